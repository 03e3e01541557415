"""Names of tensor shapes for signatures, which the tests check at run time.

B completions, T completion tokens, V vocabulary, N completions of a rollout (whole groups, all
processes), F reward functions, S steps of a completion.
"""

from jaxtyping import Float, Num
from torch import Tensor

Scalar = Float[Tensor, ""]
Count = Num[Tensor, ""]
B = Float[Tensor, "B"]
B1 = Float[Tensor, "B 1"]
BT = Float[Tensor, "B T"]
BT1 = Float[Tensor, "B #T"]  # one value per token (B, T) or per completion (B, 1)
BTV = Float[Tensor, "B T V"]
N = Float[Tensor, "N"]
N1 = Float[Tensor, "N 1"]
NF = Float[Tensor, "N F"]
NV = Float[Tensor, "N V"]
NS = Float[Tensor, "N S"]
Mask = Num[Tensor, "B T"]
Ids = Num[Tensor, "B T"]
