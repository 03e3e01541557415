"""Regimes of the nano world of random tables, and the training of its starting models.

Updates, rates and batches were chosen on seeds 100 and 101.
"""

from collections.abc import Mapping

from core.families.nano import Settings, offline_regime, start
from eval.nano.random_tables import COUNTS, FEW, KNOWN, MANY, MAX_TOKENS, TABLE

# LoRA on all matrices but the embeddings, which the head shares.
LORA: Settings = {
    "use_peft": True,
    "lora_r": 16,
    "lora_alpha": 32,
    "lora_dropout": 0.0,
    "lora_target_modules": "all-linear",
    "learning_rate": 4e-3,
}


def table_regime(table: str, *, updates: int, rate: float, batch: int = 64) -> Settings:
    """Return a regime in which a table of pairs is memorised.

    Its held-out problems are pairs of the table that is trained on: measured is what is remembered.

    Args:
        table: Name of the table, its benchmark and its data set.
        updates: Number of optimizer steps.
        rate: Learning rate.
        batch: Pairs of an update.
    """
    return {
        **offline_regime(
            table,
            "tables-start",
            data=table,
            updates=updates,
            rate=rate,
            tokens=MAX_TOKENS,
            batch=batch,
        ),
        "at_k_benchmarks": 0,
        "eval_limit": FEW_SCORED,
        "logging_steps": 10,
        "logging_first_step": True,
        "heldout_problems": min(COUNTS[table], MEASURED),
        "heldout_every": updates,
        "heldout_nll": True,
    }


MEASURED, FEW_SCORED = 200, 64  # pairs of a table whose loss is measured, and that are answered
TABLES = table_regime(TABLE, updates=120, rate=2e-3)
TABLES_FEW: Settings = {**table_regime(FEW, updates=60, rate=2e-3), "heldout_every": 6}
TABLES_MANY = table_regime(MANY, updates=80, rate=2e-3, batch=256)
PLAIN: Mapping[str, Settings] = {
    "tables": TABLES,
    "tables-few": TABLES_FEW,
    "tables-many": TABLES_MANY,
}
REGIMES: Mapping[str, Mapping[str, Settings]] = {
    "tables": {
        **PLAIN,
        **{f"{name}-lora": {**settings, **LORA} for name, settings in PLAIN.items()},
    }
}
STARTS: Mapping[str, Mapping[str, Settings]] = {
    "tables": {
        "tables-start": {
            **start(KNOWN, target=95, every=50, steps=400, batch=64, tokens=MAX_TOKENS),
            "data": KNOWN,
            "heldout_problems": COUNTS[KNOWN],
        }
    }
}
