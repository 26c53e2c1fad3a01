import pytest

pytest.importorskip("fastapi")
from counterpoint.errors import ConfigError, DataError  # noqa: E402
from counterpoint.serve.settings import ServeSettings  # noqa: E402

KEY = "k" * 24


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "[::1]", "127.9.9.9"])
def test_this_machine_needs_no_key(host):
    assert ServeSettings(host=host).is_loopback


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "example.org", ""])
def test_every_other_address_needs_one(host):
    with pytest.raises(ConfigError, match="there are no keys"):
        ServeSettings(host=host)
    assert not ServeSettings(host=host, read_keys=(KEY,)).is_loopback


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"max_k": 0}, "max_k must be at least 1"),
        ({"port": 70_000}, "port must be between"),
        ({"seconds": 0}, "seconds must be above 0"),
        ({"seconds": float("nan")}, "seconds must be above 0"),
        ({"read_keys": ("short",)}, "at least 16 ASCII"),
        ({"backend": "cuda"}, "backend must be one of auto, int8, onnx, torch, found 'cuda'"),
    ],
)
def test_wrong_values(given, words):
    with pytest.raises(ConfigError, match=words):
        ServeSettings(**given)


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(tmp_path):
    file = tmp_path / "serve.toml"
    file.write_text(f'port = 1\nmax_k = 1\nthreads = 7\nread_keys = ["{KEY}"]\nseconds = 3\n')
    environment = {"COUNTERPOINT_PORT": "2", "COUNTERPOINT_MAX_K": "2", "COUNTERPOINT_LOG_TEXTS": "true"}
    environment |= {"COUNTERPOINT_BACKEND": "int8"}
    found = ServeSettings.gathered({"port": 3, "host": None}, environment, file)
    assert (found.port, found.max_k, found.threads, found.log_texts) == (3, 2, 7, True)
    assert found.backend == "int8"
    assert (found.read_keys, found.seconds, found.host) == ((KEY,), 3, "127.0.0.1")
    several = ServeSettings.gathered({}, {"COUNTERPOINT_WRITE_KEYS": f"{KEY}, {KEY}2"})
    assert several.write_keys == (KEY, f"{KEY}2")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nope = 1", "unknown setting 'nope'"),
        ("port = '1'", "port must be int"),
        ("read_keys = 'x'", "read_keys must be a list"),
        ("log_texts = 1", "log_texts must be bool"),
        ("port =", "not valid TOML"),
    ],
)
def test_a_file_that_is_wrong(tmp_path, text, words):
    (tmp_path / "serve.toml").write_text(text)
    with pytest.raises((ConfigError, DataError), match=words):
        ServeSettings.gathered({}, {}, tmp_path / "serve.toml")


@pytest.mark.parametrize(("name", "text"), [("PORT", "x"), ("SECONDS", ""), ("LOG_TEXTS", "perhaps")])
def test_an_environment_that_is_wrong(name, text):
    with pytest.raises(ConfigError, match=f"COUNTERPOINT_{name} must be"):
        ServeSettings.gathered({}, {f"COUNTERPOINT_{name}": text})
    with pytest.raises(ConfigError, match="found 'tcp://10.0.0.1:8000'; Kubernetes sets it for a service"):
        ServeSettings.gathered({}, {"COUNTERPOINT_PORT": "tcp://10.0.0.1:8000"})


def test_a_file_that_is_absent(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        ServeSettings.gathered({}, {}, tmp_path / "serve.toml")


def test_a_variable_that_is_nearly_a_setting_is_noted():
    named = ("MAXK", "READ_KEY", "KEY", "EXPORT_KEY", "PORT_8000_TCP", "SERVICE_HOST", "MAX_K")
    told = ServeSettings.misspelt({f"COUNTERPOINT_{name}": "1" for name in named})
    assert told == [
        f"COUNTERPOINT_{name} is no setting, and is ignored; did you mean COUNTERPOINT_{meant}?"
        for name, meant in (("MAXK", "MAX_K"), ("READ_KEY", "READ_KEYS"))
    ]


@pytest.mark.parametrize("given", [{"replicas": 2}, {"partial": True}])
def test_what_only_a_cluster_has_needs_one(given):
    with pytest.raises(
        ConfigError, match="replicas and partial are settings of shards on a cluster; give ray"
    ):
        ServeSettings(**given)
    assert ServeSettings(ray="local", **given).ray == "local"
