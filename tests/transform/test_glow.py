import pytest
import torch
from tests.transform.flows import gaussian
from torch.testing import assert_close

from counterpoint.part import Part
from counterpoint.transform import FlowTraining, Glow
from counterpoint.transform.glow import ActNorm, Coupling, Mixing


@pytest.mark.shared
def test_the_worked_actnorm(golden):
    inputs, expected = golden("actnorm")["inputs"], golden("actnorm")["expected"]
    norm = ActNorm(4)
    with torch.no_grad():
        norm.loc_.copy_(torch.tensor(inputs["loc"]))
        norm.scale_.copy_(torch.tensor(inputs["scale"]))
        y, log_det = norm(torch.tensor([inputs["x"]]))
    assert_close(y[0], torch.tensor(expected["y"]))
    assert log_det.item() == pytest.approx(expected["logdet"], abs=1e-6)
    assert_close(norm.inverse(y), torch.tensor([inputs["x"]]))


def test_actnorm_begins_with_the_data():
    rows, _ = gaussian(500, 3)
    norm = ActNorm(3)
    with torch.no_grad():
        norm.start(rows)
        y, _ = norm(rows)
    assert_close(y.mean(0), torch.zeros(3), atol=1e-5, rtol=0)
    assert_close(y.std(0), torch.ones(3))


def test_an_affine_coupling_by_loops():
    torch.manual_seed(3)
    coupling = Coupling(6, 5, "affine")
    torch.nn.init.normal_(coupling.net_[-1].weight)
    rows = torch.randn(4, 6)
    with torch.no_grad():
        y, log_det = coupling(rows)
        assert_close(coupling.inverse(y), rows)
        for row in range(4):
            made = coupling.net_(rows[row : row + 1, :3])[0]
            scale = 1 / (1 + torch.exp(-(made[3:] + 2)))
            assert_close(y[row], torch.cat([rows[row, :3], (rows[row, 3:] + made[:3]) * scale]))
            assert_close(log_det[row], scale.log().sum())


@pytest.mark.parametrize("kind", ["permutation", "linear"])
def test_mixing_is_a_rotation_at_first_and_goes_back(kind):
    mixing = Mixing(5, kind)
    with torch.no_grad():
        matrix = mixing(torch.eye(5))[0]
        assert_close(matrix @ matrix.T, torch.eye(5))
        assert ((matrix == 0) | (matrix == 1)).all() == (kind == "permutation")
        rows = torch.randn(4, 5)
        assert_close(mixing.inverse(mixing(rows)[0]), rows)
        assert_close(mixing(rows)[1], torch.zeros(4))  # a rotation's determinant is 1


def test_levels_keep_the_number_of_components_and_leave_out_what_is_done():
    flow = Glow(8, (1, 2), fitting=FlowTraining(steps=2)).fit([gaussian(300, 8)[0]])
    sizes = [[len(step.actnorm.loc_) for step in level] for level in flow.levels_]
    assert sizes == [[8], [4, 4]]
    rows, _ = gaussian(5, 8, seed=1)
    z, _ = flow.latent(rows)
    first = flow.levels_[0][0](rows)[0]
    assert z.shape == (5, 8)
    assert_close(z[:, :4], first[:, :4])


def test_permutations_differ_and_are_saved(tmp_path):
    flow = Glow(64, fitting=FlowTraining(seed=5)).setup()
    orders = [step.mixing.order_ for level in flow.levels_ for step in level]
    assert len({tuple(order.tolist()) for order in orders}) == 6
    flow.save(tmp_path / "flow")
    again = Part.load(tmp_path / "flow")
    assert torch.equal(again.levels_[1][2].mixing.order_, orders[-1])
    other = Glow(64, fitting=FlowTraining(seed=6)).setup()
    assert not torch.equal(other.levels_[0][0].mixing.order_, orders[0])
