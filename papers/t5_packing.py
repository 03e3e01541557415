"""T5 packs several examples into one row of 512 tokens, each whole and separate from the others.

Where the sources disagree, and what is not the paper's here:

- The procedure is that of T5's code (seqio): examples are truncated to a row and placed in their
  order, a new row begins where one does not fit.
- T5's text for pre-training, C4, is treated otherwise, concatenated and cut
  (`packing_strategy=wrapped`), and is not the data here.
- TRL's index points to section 3.5.2; the text on packing is in section 3.1.
- The number of tokens of pre-training is printed as about 34 billion, 2^35.
- The speed is that of the trainer here on a processor: 4 packed rows of 512 tokens beside 4 padded
  documents, and beside 20, about as many as the packed rows hold. Padded rows are as long as the
  longest of a step. What packing saves is padding: 20 documents joined without it (`padding_free`)
  are no slower, 6,700 and 7,100 tokens a second where packed ones had 6,100 and 5,700.
"""

from core.claims import Claim, law, least, timed
from core.paper import Column, Paper, because, cite, printed

ROWS = "core.laws.packed_rows"
WRAPPED, SPLIT, NEXT_FIT, PADDED = (
    law(f"{ROWS}:utilisation", strategy)
    for strategy in ("wrapped", "bfd_split", "next_fit", "padded")
)
PACKED_SPEED, FEW_ROWS_SPEED, MANY_ROWS_SPEED = (
    timed("core.bench.packed_speed:tokens_per_second", packing, rows, seeds=8)
    for packing, rows in (("next_fit", 4), ("padded", 4), ("padded", 20))
)

PAPER = Paper(
    slug="t5-packing",
    title="Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer "
    "(sequence packing)",
    arxiv="1910.10683",
    family="sft",
    config=(
        cite("s3.1", packing=True, max_length=512),
        cite("repository", packing_strategy="next_fit"),
        cite("s3.1", per_device_train_batch_size=128, max_steps=524_288),
    ),
    model="google-t5/t5-base",
    data="glue",
    not_run="its model is an encoder-decoder, which no trainer here trains",
    reported=printed(
        "s3.1",
        (
            Column(benchmark="tokens of a batch", unit="tokens"),
            Column(benchmark="steps of pre-training", unit="steps"),
            Column(benchmark="tokens of pre-training", unit="tokens"),
        ),
        "as printed",
        {"T5 baseline": (65_536.0, 524_288.0, 34_359_738_368.0)},
    ),
    trl_index={"packing": True, "max_length": 512},
    trl_reasons=(
        because(
            "TRL's `bfd` sorts documents by length; T5 packs next-fit, in their order.",
            "packing_strategy",
        ),
    ),
    claims=(
        Claim(
            "pack-utilisation",
            "Packed rows have a larger share of tokens that are no padding.",
            least(WRAPPED, SPLIT, NEXT_FIT) > PADDED,
        ),
        Claim(
            "pack-strategy-order",
            "Concatenated rows are at least as full as best-fit rows, and these as next-fit rows.",
            least(WRAPPED - SPLIT, SPLIT - NEXT_FIT) >= 0,
        ),
        Claim(
            "pack-loss-equal",
            "The summed loss of a packed row is that of its examples alone.",
            law(f"{ROWS}:loss_changes", isolated=True).about(0.0, within=1e-10),
        ),
        Claim(
            "pack-leak",
            "Without isolation of the examples the summed loss is another one.",
            law(f"{ROWS}:loss_changes", isolated=False) > 1e-3,
        ),
        Claim(
            "pack-speed",
            "Packing processes more tokens per second.",
            least(PACKED_SPEED - FEW_ROWS_SPEED, PACKED_SPEED - MANY_ROWS_SPEED) > 0,
        ),
    ),
)
