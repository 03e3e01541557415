"""Methods of TRL's trainers that do not exist here, each with what to override instead."""

from collections.abc import Mapping

from eval.errors import BadValue

GENERATE = "override generate(prompts)"
LOSS = "override loss(model, inputs)"
ROLLOUT = "override rollout(rows), or generate and score, which it calls"
SCORE = "override score(rows, generated)"
PAIR_LOSS = "override pair_losses(chosen, rejected)"
PREPARED = "override prepared(dataset, packing)"
PREPARED_PAIRS = "override prepared(dataset)"
NO_TOOLS = "no tools are called"
NOTHING_SENT = "nothing is sent, so leave it out"

OFFERED = "core.trainers.token_masks"  # has the functions that scripts of TRL's call

GRPO_METHODS: Mapping[str, str] = {
    "_calculate_rewards": SCORE,
    "_compute_loss": LOSS,
    "_generate": GENERATE,
    "_generate_and_score_completions": ROLLOUT,
    "_generate_single_turn": GENERATE,
    "_get_per_token_logps_and_entropies": LOSS,
    "_get_tool_suffix_ids": NO_TOOLS,
    "_log_completion_extra": SCORE,
    "_log_metric": SCORE,
    "_send_telemetry": NOTHING_SENT,
    "_tokenize_prompts": GENERATE,
    "_tool_call_loop": NO_TOOLS,
    "get_gamma_weights": LOSS,
    "get_high_entropy_mask": LOSS,
    "get_off_policy_mask": LOSS,
}
TEACHER_METHODS: Mapping[str, str] = {  # of trainers with a teacher
    **dict.fromkeys(
        (
            *("_compute_advantage", "_compute_iw_opd_loss", "_compute_loss"),
            *("_compute_policy_loss", "_compute_self_distillation_loss", "_forward_logits"),
            *("_get_last_hidden_state", "_get_teacher_logits", "_reduce_divergence_loss"),
            *("_single_step_decomposition_loss", "generalized_jsd_loss"),
        ),
        LOSS,
    ),
    **dict.fromkeys(
        (
            *("_generate", "_generate_single_turn", "_generate_student_completions"),
            *("_generate_transformers", "_generate_with_model", "_tokenize_prompts"),
            "generate_on_policy_outputs",
        ),
        GENERATE,
    ),
    **dict.fromkeys(("_fill_buffer", "_prepare_training_batch", "sample_rollouts"), ROLLOUT),
    "_setup_teacher_model": "give the trainer another teacher",
}
SFT_METHODS: Mapping[str, str] = {
    "_prepare_dataset": PREPARED,
    "_reject_skip_prepare_without_labels": PREPARED,
    "_send_telemetry": NOTHING_SENT,
}
PREFERENCE_METHODS: Mapping[str, str] = {  # of CPO, ORPO and TPO
    "_compute_loss": PAIR_LOSS,
    "_prepare_dataset": PREPARED_PAIRS,
    "build_tokenized_answer": PREPARED_PAIRS,
    "concatenated_forward": PAIR_LOSS,
    "concatenated_inputs": "override collator()",
    "cpo_loss": PAIR_LOSS,
    "get_batch_logps": PAIR_LOSS,
    "get_batch_loss_metrics": "override loss_terms(tokens, inputs)",
    "odds_ratio_loss": PAIR_LOSS,
    "store_metrics": "call record(metrics)",
    "tokenize_row": PREPARED_PAIRS,
}


def refuse_uncalled(trainer: object, methods: Mapping[str, str]) -> None:
    """Refuse a trainer, or a class of trainers, that overrides a method that is never called here.

    Functions of the same name that a trainer provides for callers are no overrides.

    Raises:
        BadValue: it has one of `methods`, whose values say what to do instead.
    """
    kind = trainer if isinstance(trainer, type) else type(trainer)
    for name, instead in methods.items():
        method = getattr(trainer, name, None)
        if method is not None and getattr(method, "__module__", None) != OFFERED:
            raise BadValue(f"{kind.__name__}.{name} would never be called here: {instead}")
