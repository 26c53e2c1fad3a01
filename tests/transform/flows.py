"""What tests of flows share: known densities, and the Jacobian of a flow by automatic differentiation."""

import math

import torch


def gaussian(n, dim, seed=0):
    """Rows of a Gaussian that is neither centred nor round, and its density."""
    generator = torch.Generator().manual_seed(seed)
    mixing = torch.eye(dim) + 0.6 * torch.randn(dim, dim, generator=generator)
    rows = torch.randn(n, dim, generator=generator) @ mixing + 3
    density = torch.distributions.MultivariateNormal(torch.full((dim,), 3.0), mixing.T @ mixing)
    return rows, density


def moved(flow, seed=0):
    """The flow away from its start, so that no part of it is an identity."""
    generator = torch.Generator().manual_seed(seed)
    for name, tensor in flow.named_buffers():
        if tensor.is_floating_point() and not name.endswith(("sign_", "running_var", "deviation_")):
            tensor += 0.05 * torch.randn(tensor.shape, generator=generator, dtype=tensor.dtype)
    return flow


def jacobian_log_dets(flow, rows):
    """ln|det ∂z/∂x| of each row by itself."""
    found = []
    for row in rows:
        jacobian = torch.autograd.functional.jacobian(lambda x: flow.latent(x[None])[0][0], row)
        found.append(torch.linalg.slogdet(jacobian).logabsdet)
    return torch.stack(found)


def bits_of_diagonal_gaussian(rows):
    """Of the best Gaussian without correlations, in bits per dimension."""
    return (0.5 * math.log(2 * math.pi * math.e) + rows.std(0, correction=0).log().mean().item()) / math.log(
        2
    )
