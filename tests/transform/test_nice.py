import pytest
import torch
from torch import nn
from torch.testing import assert_close

from counterpoint.transform import FlowTraining, Nice
from counterpoint.transform.nice import couple


class Times(nn.Module):
    def forward(self, x):
        return 10 * x


@pytest.mark.shared
def test_the_worked_coupling(golden):
    case = golden("nice_coupling")
    x = torch.tensor([case["inputs"]["x"]])
    y = couple(x, Times(), odd=True)
    assert_close(y[0], torch.tensor(case["expected"]["y"]))
    assert_close(couple(y, Times(), odd=True, sign=-1), x)


def test_couplings_take_turns_and_the_network_is_as_described():
    flow = Nice(6, couplings=3, layers=2, width=5, start="released").setup()
    rows = torch.randn(4, 6)
    h = rows.clone()
    for number, net in enumerate(flow.nets_):
        kinds = [type(part).__name__ for part in net]
        assert kinds == ["Linear", *["Linear", "ReLU", "BatchNorm1d"] * 2, "Linear"]
        assert [part.weight.shape for part in net if isinstance(part, nn.Linear)] == [
            (5, 3), (5, 5), (5, 5), (3, 5),
        ]  # fmt: skip
        for row in range(4):
            changed, read = (slice(1, None, 2), slice(0, None, 2))[:: 1 if number % 2 == 0 else -1]
            h[row, changed] += net(h[row : row + 1, read])[0]
    z, log_det = flow.latent(rows)
    assert_close(z, h * torch.e)  # s is 1 in every component
    assert_close(log_det, torch.full((4,), 6.0))


def test_the_defaults_are_the_papers():
    flow = Nice(8).setup()
    assert len(flow.nets_) == 4 and sum(isinstance(part, nn.Linear) for part in flow.nets_[0]) == 7
    assert flow.nets_[0][1].weight.shape == (1000, 1000) and flow.fitting is None
    assert FlowTraining().lr == 1e-4
