"""What NICE and Glow have in common: densities, inverses, fitting, refusals."""

import math

import pytest
import torch
from tests.transform.flows import bits_of_diagonal_gaussian, gaussian, jacobian_log_dets, moved
from torch import nn
from torch.testing import assert_close

from counterpoint.errors import ConfigError, DataError, NotFittedError, ShapeError
from counterpoint.part import Part
from counterpoint.transform import FlowTraining, Glow, Nice, Whitening
from counterpoint.vectors import Vectors

FLOWS = {
    "nice": lambda dim, **fitting: Nice(dim, layers=2, width=16, fitting=FlowTraining(**fitting)),
    "nice as released": lambda dim, **fitting: Nice(
        dim, layers=2, width=16, start="released", fitting=FlowTraining(**fitting)
    ),
    "glow": lambda dim, **fitting: Glow(dim, (3,), fitting=FlowTraining(**fitting)),
    "glow, affine and linear": lambda dim, **fitting: Glow(
        dim, (2,), coupling="affine", mixing="linear", fitting=FlowTraining(**fitting)
    ),
    "glow, two levels": lambda dim, **fitting: Glow(
        dim, (2, 1), coupling="affine", fitting=FlowTraining(**fitting)
    ),
}
every_flow = pytest.mark.parametrize("declare", FLOWS.values(), ids=FLOWS)


def dim_of(flow_test_id):
    return 8 if "two levels" in flow_test_id else 6


@every_flow
def test_the_determinant_is_that_of_the_jacobian(declare, request):
    dim = dim_of(request.node.callspec.id)
    rows = gaussian(300, dim)[0].double()
    flow = moved(declare(dim, steps=3).fit([rows]).double())
    z, log_det = flow.latent(rows[:5])
    assert log_det.std() > 0 or "affine" not in request.node.callspec.id
    assert_close(log_det, jacobian_log_dets(flow, rows[:5]), atol=1e-5, rtol=0)
    gaussian_part = -0.5 * (z**2).sum(1) - dim / 2 * math.log(2 * math.pi)
    assert_close(flow.log_likelihood(rows[:5]), gaussian_part + log_det)


@every_flow
def test_the_inverse_goes_back(declare, request):
    rows, _ = gaussian(300, dim_of(request.node.callspec.id))
    flow = moved(declare(rows.shape[1], steps=3).fit([rows]))
    z, _ = flow.latent(rows)
    assert (z - rows).abs().max() > 1
    assert_close(flow.inverse(z), rows, atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    "flow",
    [
        Nice(4, width=32, layers=1, fitting=FlowTraining(steps=400, lr=5e-3)),
        Glow(4, (3, 3), mixing="linear", fitting=FlowTraining(steps=400, lr=1e-2)),
    ],
    ids=["nice", "glow"],
)
def test_the_likelihood_of_a_known_gaussian_is_recovered(flow):
    rows, density = gaussian(20_000, 4)
    flow.fit([rows[:16_000]])
    held_out = rows[16_000:]
    true = -density.log_prob(held_out).mean().item() / (4 * math.log(2))
    assert bits_of_diagonal_gaussian(held_out) > true + 0.1, "correlations are worth something"
    assert flow.bits_per_dimension(held_out) == pytest.approx(true, abs=0.03)
    spread = density.log_prob(held_out).std().item()
    assert flow.log_likelihood(held_out).std().item() == pytest.approx(spread, rel=0.1)
    z, _ = flow.latent(held_out)
    assert_close(z.T @ z / len(z), torch.eye(4), atol=0.15, rtol=0)


@every_flow
def test_the_likelihood_rises_above_a_diagonal_gaussians(declare, request):
    rows, _ = gaussian(4000, dim_of(request.node.callspec.id))
    told = []
    flow = declare(rows.shape[1], steps=200, batch=500, lr=1e-2)
    flow.fit([rows], on_step=lambda *step: told.append(step))
    assert [step for step, _, _ in told] == list(range(1, 201)) and {total for _, total, _ in told} == {200}
    assert told[-1][2] < told[0][2]
    assert flow.bits_per_dimension(rows) < bits_of_diagonal_gaussian(rows) - 0.05


def test_without_steps_to_speak_of_a_start_from_the_data_is_the_diagonal_gaussian():
    rows, _ = gaussian(4000, 6)
    for flow in (
        Nice(6, width=16, fitting=FlowTraining(steps=1)),
        Glow(6, (3,), fitting=FlowTraining(steps=1)),
    ):
        bits = flow.fit([rows]).bits_per_dimension(rows)
        assert bits == pytest.approx(bits_of_diagonal_gaussian(rows), abs=2e-3)


def test_bits_per_dimension_are_a_mean_over_all_rows():
    rows, _ = gaussian(10_000, 6)
    flow = FLOWS["glow"](6, steps=2).fit([rows])
    wanted = -flow.log_likelihood(rows).mean().item() / (6 * math.log(2))
    assert flow.bits_per_dimension(rows) == pytest.approx(wanted, rel=1e-5)


@every_flow
def test_fitting_is_decided_by_the_seed_alone(declare, request):
    rows, _ = gaussian(600, dim_of(request.node.callspec.id))
    first, other = (
        declare(rows.shape[1], steps=3, batch=100),
        declare(rows.shape[1], steps=3, batch=100, seed=1),
    )
    first.fit([rows])
    kept = first.fingerprint()
    torch.randn(7)  # whatever was drawn elsewhere
    assert first.fit(rows.split(17)).fingerprint() == kept
    other.fit([rows])
    assert not torch.equal(first.latent(rows)[0], other.latent(rows)[0])
    state = torch.get_rng_state()
    first.fit([rows])
    assert torch.equal(state, torch.get_rng_state())


def test_a_fit_keeps_to_float32_inside_an_autocast():
    rows, _ = gaussian(300, 6)
    plain = FLOWS["nice"](6, steps=20).fit([rows])
    with torch.autocast("cpu", torch.bfloat16):
        inside = FLOWS["nice"](6, steps=20).fit([rows])
    assert_close(inside.state_dict(), plain.state_dict(), atol=0, rtol=0)


def test_no_training_around_it_moves_a_flow():
    rows, _ = gaussian(300, 6)
    flow = FLOWS["nice"](6, steps=3).fit([rows])
    before = flow.fingerprint()
    around = nn.ModuleList([flow]).train()
    vectors = Vectors(rows[None].requires_grad_(), torch.ones(1, 300, dtype=torch.bool))
    flow(vectors).values.square().sum().backward()
    assert not flow.training and not list(around.parameters()) and flow.fingerprint() == before


def test_zero_rows_stay_zero_and_others_are_mapped():
    rows, _ = gaussian(300, 6)
    flow = FLOWS["nice"](6, steps=3).fit([rows])
    values = torch.cat([rows[:2], torch.zeros(1, 6)])[None]
    found = flow(Vectors(values, torch.ones(1, 3, dtype=torch.bool))).values[0]
    assert_close(found[:2], flow.latent(rows[:2])[0])
    assert not found[2].any()


def test_steps_are_bounded_by_epochs():
    rows, _ = gaussian(330, 6)
    told = []
    FLOWS["glow"](6, steps=100, epochs=2, batch=100).fit([rows], on_step=lambda *step: told.append(step))
    assert told[-1][:2] == (6, 6)


@every_flow
def test_rows_are_held_out_and_show_what_was_learnt_by_heart(declare, request):
    dim = dim_of(request.node.callspec.id)
    rows, density = gaussian(2000, dim)
    flow = declare(dim, steps=100, lr=1e-2).fit([rows])
    bits, again = flow.bits, declare(dim, steps=100, lr=1e-2).fit(rows.split(33)).bits
    assert (bits.rows, bits.rows_held_out) == (1900, 100) and again == bits
    assert flow.count_ == 2000
    assert bits.held_out == pytest.approx(bits.training, abs=0.6)
    few = declare(dim, steps=400, lr=3e-2, batch=40)
    with pytest.warns(
        UserWarning, match=rf"fitted on 40 vectors of {dim} components; .* at least {10 * dim}"
    ):
        few.fit([rows[:40]])
    assert (few.bits.rows, few.bits.rows_held_out) == (38, 2)
    with pytest.warns(UserWarning, match="fitted on 19 vectors"):
        few.fit([rows[:19]])
    assert few.bits.held_out is None and few.bits.rows == 19


def test_held_out_rows_are_never_learnt_from():
    """Rows that are held out may be anything: nothing of the map depends on them."""
    rows, _ = gaussian(400, 6)
    draw = torch.Generator().manual_seed(5)
    held = torch.randperm(400, generator=draw)[:20]
    kept = torch.ones(400, dtype=torch.bool)
    kept[held] = False
    flow = FLOWS["nice"](6, steps=30, seed=5).fit([rows])
    other = rows.clone()
    other[held] += 7
    moved_rows = FLOWS["nice"](6, steps=30, seed=5).fit([other])
    assert (
        moved_rows.fingerprint() == flow.fingerprint() and moved_rows.bits.held_out > flow.bits.held_out + 1
    )
    assert_close(flow.mean_, rows[kept].mean(0))
    assert flow.bits.held_out == pytest.approx(flow.bits_per_dimension(rows[held.sort().values]))


def test_a_flow_that_learnt_few_rows_by_heart_says_so():
    rows, density = gaussian(3000, 32)
    fitting = FlowTraining(steps=600, lr=3e-3, batch=60, epochs=1000)
    few = Nice(32, layers=1, width=64, fitting=fitting)
    with pytest.warns(UserWarning, match="fitted on 80 vectors of 32 components"):
        few.fit([rows[:80]])
    true = -density.log_prob(rows).mean().item() / (32 * math.log(2))
    assert few.bits.training < true - 0.3 and few.bits.held_out > true + 0.3
    assert few.bits.held_out == pytest.approx(few.bits_per_dimension(rows[80:]), rel=0.5)


def test_rows_that_do_not_vary_in_all_directions_are_warned_of():
    rows, _ = gaussian(600, 8)
    flat = rows.clone()
    flat[:, 3] = flat[:, :3].sum(1)  # no component is constant
    flat[:, 5] = flat[:, 4] - flat[:, 0]
    said = r"the 600 vectors vary in 6 of 8 directions, .*rank=6, power=0.0\) or counterpoint fit --rank 6"
    for flow in (Nice(8, layers=1, width=8, fitting=FlowTraining(steps=2)), FLOWS["glow"](8, steps=2)):
        with pytest.warns(UserWarning, match=said):
            flow.fit([flat])
    rare = flat.clone()
    rare[-1, 3] += 1  # a direction of one row, beyond those that are looked at first
    with pytest.warns(UserWarning, match="vary in 7 of 8 directions"):
        FLOWS["glow"](8, steps=2).fit([rare])
    FLOWS["glow"](8, steps=2).fit([rows])  # no warning
    turned = Whitening(8, rank=6, power=0.0).fit([flat])
    mapped = turned(Vectors(flat[None], torch.ones(1, 600, dtype=torch.bool))).values[0]
    FLOWS["nice"](6, steps=2).fit([mapped])


def test_what_is_wrong_is_named(tmp_path):
    with pytest.raises(ConfigError, match="Nice: dim must be even.*found 7"):
        Nice(7)
    with pytest.raises(ConfigError, match="Glow: dim must divide by 4 for 2 levels.*found 6"):
        Glow(6)
    with pytest.raises(ConfigError, match=r"couplings must be at least 1, found 0[\s\S]*start must be"):
        Nice(4, couplings=0, start="nowhere")  # type: ignore[arg-type]
    with pytest.raises(
        ConfigError, match=r"levels must name[\s\S]*width[\s\S]*coupling must[\s\S]*mixing must"
    ):
        Glow(4, (0,), width=0, coupling="x", mixing="y")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"batch must be at least 2, found 1[\s\S]*lr must be positive"):
        FlowTraining(batch=1, lr=0.0)
    rows, _ = gaussian(300, 6)
    flow = FLOWS["glow"](6, steps=2)
    with pytest.raises(ShapeError, match=r"rows of 6 components, found shape \(300, 5\)"):
        flow.fit([rows[:, :5]])
    with pytest.raises(DataError, match="at least two different vectors, found 1"):
        flow.fit([rows[:1]])
    flat = rows.clone()
    flat[:, [2, 4]] = 0.1
    flat[0, 4] += 1e-6  # rounding
    with pytest.raises(DataError, match=r"component 2 is the same in all 300 vectors \(2 such components\)"):
        flow.fit([flat])
    with pytest.raises(DataError, match="they vary too little for a density: fit it to more texts"):
        FLOWS["nice"](6).fit([torch.ones(5, 6)])
    with pytest.raises(DataError, match=r"rank=2, power=0.0\) or counterpoint"):  # 3 vectors span no more
        FLOWS["nice"](6).fit([torch.eye(6)[:3]])
    with pytest.raises(DataError, match=r"Whitening\(6, rank=4, power=0.0\) or counterpoint fit --rank 4"):
        FLOWS["nice"](6).fit([flat])
    with pytest.raises(DataError, match="the likelihood is not finite at step 1"):
        FLOWS["nice as released"](6, steps=2).fit([rows * 1e30])
    FLOWS["glow"](6).save(tmp_path / "unfitted")
    with pytest.raises(NotFittedError, match="Glow has seen no vectors yet"):
        Part.load(tmp_path / "unfitted")(Vectors(rows[None], torch.ones(1, 300, dtype=torch.bool)))
    flow.fit([rows])
    with pytest.raises(ShapeError, match="fitted on vectors of 6 components, found 5"):
        flow(Vectors(rows[None, :, :5], torch.ones(1, 300, dtype=torch.bool)))
