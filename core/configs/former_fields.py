"""Fields of earlier releases of TRL and transformers, each with what to set instead."""

from collections.abc import Mapping

LENGTH = "prompts are never cut by themselves: set max_length, or drop longer prompts"
FORMER_FIELDS: Mapping[str, str] = {
    "warmup_ratio": "transformers 5 has none: set warmup_steps to a share below 1",
    "evaluation_strategy": "set eval_strategy",
    "no_cuda": "set use_cpu",
    "logging_dir": "transformers 5 has none: leave it out",
    "overwrite_output_dir": "transformers 5 has none: leave it out, or choose another output_dir",
    "save_safetensors": "checkpoints are always safetensors: leave it out",
    "per_gpu_train_batch_size": "set per_device_train_batch_size",
    "per_gpu_eval_batch_size": "set per_device_eval_batch_size",
    "fp16_backend": "leave it out",
    "half_precision_backend": "leave it out",
    "push_to_hub_token": "set hub_token",
    "use_liger_loss": "set use_liger_kernel",
    "use_liger": "set use_liger_kernel",
    "max_seq_length": "set max_length",
    "num_of_sequences": "the length of a packed row is max_length: leave it out",
    "chars_per_token": "leave it out",
    "dataset_batch_size": "leave it out",
    "max_prompt_length": LENGTH,
    "max_target_length": "set max_length",
    "max_new_tokens": "set max_completion_length",
    "truncation_mode": "leave it out",
    "rpo_alpha": "set loss_type=['sigmoid', 'sft'] and loss_weights=[1.0, rpo_alpha]",
    "reference_free": "leave it out, or train with CPOTrainer, which has no reference model",
    "label_pad_token_id": "leave it out: labels are padded with -100",
    "padding_value": "leave it out: the tokenizer's padding token is used",
    "is_encoder_decoder": "leave it out: models are decoders",
    "generate_during_eval": "leave it out: use a callback that generates",
    "model_adapter_name": "leave it out",
    "ref_adapter_name": "leave it out",
    "force_use_ref_model": "leave it out",
    "dataset_num_proc": "leave it out",
}
