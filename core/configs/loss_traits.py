"""Properties of the loss of an on-policy method on which its rollouts depend."""


class LossTraits:
    """Properties of a config of rollouts that the config of another loss overrides."""

    @property
    def completions_per_row(self) -> int:
        """Completions that `per_device_train_batch_size` counts as one: those of a pair, or 1."""
        return 1

    @property
    def longest_prompt(self) -> int | None:
        """Number of tokens to which prompts are cut, from the left; None cuts none."""
        return None

    @property
    def completion_log_steps(self) -> int:
        """Optimizer steps between two tables of completions, at most one for each log."""
        return 1

    @property
    def heats_loss(self) -> bool:
        """True if log-probabilities have the temperature of sampling, too."""
        return True

    @property
    def has_ratio(self) -> bool:
        """True if the loss has a ratio to the policy that sampled."""
        return self.completions_per_row == 1

    @property
    def reads_reference(self) -> bool:
        """True if a loss or rewards read log-probabilities of the reference."""
        return False

    @property
    def counts_groups(self) -> bool:
        """True if a loss divides by the tokens of each prompt."""
        return False
