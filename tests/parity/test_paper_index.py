"""Settings of TRL's paper index for the trainers of `core`: built here where TRL builds them."""

import pytest
import trl
from trl.experimental import cpo, gkd, gold, iw_opd, orpo, sdft, sdpo, tpo

import core
from eval.errors import BadValue

DAPO = {
    "mask_truncated_completions": True,
    "loss_type": "dapo",
    "epsilon_high": 0.28,
    "epsilon": 0.2,
    "per_device_train_batch_size": 512,
    "num_generations": 16,
    "max_completion_length": 20480,
    "beta": 0.0,
}
CORRECTED = {"use_vllm": True, "vllm_importance_sampling_clip_max": 2.0}
CALLS = {
    "GRPOConfig": {
        "DeepSeekMath": {
            "loss_type": "grpo",
            "beta": 0.001,
            "epsilon": 10.0,
            "num_generations": 16,
            "max_completion_length": 32768,
            "steps_per_generation": 16,
            "per_device_train_batch_size": 4,
            "gradient_accumulation_steps": 128,
        },
        "DeepSeek-R1": {
            "learning_rate": 4e-5,
            "max_prompt_length": 4096,  # a field until TRL 0.28
            "max_completion_length": 32768,
            "num_generations": 16,
            "beta": 0.001,
            "use_vllm": True,
        },
        "GSPO": {
            "importance_sampling_level": "sequence",
            "loss_type": "grpo",
            "beta": 0.0,
            "epsilon": 3e-4,
            "epsilon_high": 4e-4,
            "gradient_accumulation_steps": 1,
            "steps_per_generation": 4,
        },
        "DAPO": DAPO,
        "80/20": DAPO | {"top_entropy_quantile": 0.2},
        "Dr. GRPO": {  # for eight processes
            "loss_type": "dr_grpo",
            "per_device_train_batch_size": 1,
            "num_generations": 8,
            "max_completion_length": 3000,
            "beta": 0.0,
        },
        "Lite PPO": {
            "scale_rewards": "batch",
            "loss_type": "dapo",
            "beta": 0.0,
            "top_p": 0.99,
            "top_k": 100,
            "temperature": 0.99,
            "num_generations": 8,
            "num_iterations": 1,
            "per_device_train_batch_size": 4,
            "gradient_accumulation_steps": 32,
            "steps_per_generation": 8,
        },
        "TIS": CORRECTED | {"vllm_importance_sampling_mode": "sequence_truncate"},
        "MIS": CORRECTED | {"vllm_importance_sampling_mode": "sequence_mask"},
        "ScaleRL": {  # for two processes
            "loss_type": "cispo",
            "epsilon_high": 5.0,
            "num_generations": 16,
            "scale_rewards": "batch",
            "cast_lm_head_to_fp32": True,
        },
        "SAPO": {
            "loss_type": "sapo",
            "sapo_temperature_pos": 1.0,
            "sapo_temperature_neg": 1.05,
            "scale_rewards": "group",
        },
        "DeepSeek-V3.2, KL": {"beta": 0.001, "use_bias_correction_kl": True},
        "DeepSeek-V3.2, masks": {"off_policy_mask_threshold": 0.5},
        "GDPO": {"multi_objective_aggregation": "normalize_then_sum"},
        "LUSPO": {
            "loss_type": "luspo",
            "importance_sampling_level": "sequence",
            "epsilon": 2e-3,
            "epsilon_high": 2.5e-3,
        },
        "INTELLECT-2": {  # for two processes
            "delta": 4,
            "epsilon": 0.2,
            "beta": 0.001,
            "num_generations": 16,
            "learning_rate": 3e-7,
        },
    },
    "SFTConfig": {
        "DFT": {"loss_type": "dft"},
        "DFT, its setup": {
            "loss_type": "dft",
            "learning_rate": 5e-5,
            "max_length": 2048,
            "per_device_train_batch_size": 8,
            "gradient_accumulation_steps": 32,
        },
        "T5": {"packing": True, "max_length": 512},
        "best-fit packing": {
            "packing": True,
            "packing_strategy": "bfd_split",
            "max_length": 4096,
        },
    },
    "RLOOConfig": {
        "RLOO": {
            "per_device_train_batch_size": 512,
            "steps_per_generation": 2,
            "beta": 0.03,
            "num_generations": 2,
            "learning_rate": 1e-6,
        },
        "REINFORCE++": {"normalize_advantages": True},
    },
    "DPOConfig": {
        "DPO": {
            "loss_type": "sigmoid",
            "per_device_train_batch_size": 64,
            "learning_rate": 1e-6,
            "beta": 0.1,
        },
        "IPO": {"loss_type": "ipo", "per_device_train_batch_size": 90, "learning_rate": 1e-2},
        "EXO": {"loss_type": "exo_pair", "label_smoothing": 1e-3},
        "NCA": {"loss_type": "nca_pair", "beta": 0.01},
        "robust": {"loss_type": "robust", "label_smoothing": 0.1},
        "BCO": {"loss_type": "bco_pair", "beta": 0.01},
        "SPPO": {"loss_type": "sppo_hard", "beta": 1e-3},
        "AOT": {"loss_type": "aot", "beta": 0.01},
        "AOT, unpaired": {"loss_type": "aot_unpaired", "beta": 0.01},
        "APO": {"loss_type": "apo_zero", "beta": 0.1},
        "DiscoPOP": {"loss_type": "discopop", "beta": 0.05, "discopop_tau": 0.05},
        "RSO": {"loss_type": "hinge", "beta": 0.05},
        "LD-DPO": {"loss_type": "sigmoid", "ld_alpha": 0.5},
        "f-DPO": {"f_divergence_type": "js_divergence"},
        "WPO": {"use_weighting": True, "beta": 0.01},
        "TR-DPO": {
            "sync_ref_model": True,
            "ref_model_mixup_alpha": 0.6,
            "ref_model_sync_steps": 512,
        },
        "Tulu 3": {"loss_type": "sigmoid_norm", "beta": 5.0},
        "MPO": {"loss_type": ["sigmoid", "bco_pair", "sft"], "loss_weights": [0.8, 0.2, 1.0]},
        "iterative RPO": {"loss_type": ["sigmoid", "sft"], "loss_weights": [1.0, 1.0]},
    },
    "CPOConfig": {
        "CPO": {
            "loss_type": "sigmoid",
            "cpo_alpha": 1.0,
            "beta": 0.1,
            "learning_rate": 1e-4,
            "lr_scheduler_type": "inverse_sqrt",
            "num_train_epochs": 1,
            "max_length": 512,
        },
        "SimPO": {"loss_type": "simpo", "cpo_alpha": 0.0, "beta": 2.5, "learning_rate": 1e-6},
        "AlphaPO": {
            "loss_type": "alphapo",
            "alpha": 0.25,
            "beta": 2.5,
            "simpo_gamma": 0.1,
            "learning_rate": 7e-7,
        },
    },
    "ORPOConfig": {
        "ORPO": {
            "beta": 0.1,
            "learning_rate": 5e-6,
            "lr_scheduler_type": "inverse_sqrt",
            "warmup_steps": 200,
            "num_train_epochs": 5,
            "per_device_train_batch_size": 8,
        },
    },
    "TPOConfig": {
        "TPO": {"loss_type": "sigmoid", "tpo_alpha": 1.0, "beta": 0.01, "learning_rate": 5e-7},
        "TPO-L": {"loss_type": "tpo-l", "tpo_l_gamma": 0.5, "max_length": 1024},
    },
    "KTOConfig": {"KTO": {}},
    "DistillationConfig": {
        "GKD, on its own samples": {"beta": 1.0, "temperature": 1.0},
        "on-policy distillation": {"beta": 1.0, "lmbda": 1.0},  # a field of earlier releases
    },
    "GKDConfig": {
        "GKD": {
            "lmbda": 0.5,
            "beta": 0.5,
            "temperature": 1.0,
            "max_steps": 40_000,
            "learning_rate": 3e-4,
            "per_device_train_batch_size": 32,
            "warmup_steps": 2000,
            "max_new_tokens": 64,
        },
    },
    "GOLDConfig": {
        "on-policy distillation": {"lmbda": 1.0, "beta": 1.0},
        "GOLD": {  # as TRL's page of the trainer has it
            "use_uld_loss": True,
            "uld_use_hybrid_loss": True,
            "teacher_tokenizer_name_or_path": "Qwen/Qwen2.5-0.5B-Instruct",
        },
        "GOLD, weighed": {
            "use_uld_loss": True,
            "use_extended_uld": True,
            "uld_use_hybrid_loss": True,
            "uld_hybrid_matched_weight": 0.6,
            "uld_hybrid_unmatched_weight": 0.4,
            "uld_crossentropy_weight": 0.1,
            "uld_distillation_weight": 1.0,
            "lmbda": 0.5,
        },
    },
    "IWOPDConfig": {
        "IW-OPD": {
            "distillation_objective": "iw_opd",
            "iw_opd_gamma": 0.5,
            "lmbda": 1.0,
            "learning_rate": 1e-5,
            "per_device_train_batch_size": 1,
            "gradient_accumulation_steps": 32,
            "num_generations": 1,
            "top_p": 1.0,
            "max_prompt_length": 2048,
            "max_completion_length": 16_384,
            "max_length": 18_432,  # without which TRL refuses the call, too
            "save_steps": 10,
        },
    },
    "SDPOConfig": {
        "SDPO": {
            "distillation_alpha": 0.5,
            "distillation_mode": "topk_logits",
            "distillation_topk": 100,
            "distillation_is_clip": 2.0,
            "distillation_weight": 1.0,
            "use_successful_as_teacher": True,
            "teacher_model_kind": "ema",
            "teacher_update_rate": 0.05,
            "include_environment_feedback": True,
        },
    },
    "SDFTConfig": {
        "SDFT": {
            "distillation_alpha": 0.5,
            "distillation_mode": "topk_logits",
            "distillation_topk": 5,
            "max_completion_length": 64,
        },
    },
    "RewardConfig": {"reward centring": {"center_rewards_coefficient": 0.01}},
}
HOMES = {  # of TRL's experimental trainers
    **{"CPOConfig": cpo, "ORPOConfig": orpo, "TPOConfig": tpo},
    **{"GKDConfig": gkd, "GOLDConfig": gold, "IWOPDConfig": iw_opd},
    **{"SDFTConfig": sdft, "SDPOConfig": sdpo},
}
TAKEN = {"on-policy distillation"}  # here, although this release of TRL has a field less
HERE = {"use_cpu": True, "bf16": False}


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize(
    ("kind", "paper"), [(kind, paper) for kind, papers in CALLS.items() for paper in papers]
)
def test_what_trl_builds_is_built_with_its_values(kind, paper, tmp_path):
    settings = CALLS[kind][paper] | HERE | {"output_dir": str(tmp_path)}
    try:
        theirs = getattr(HOMES.get(kind, trl), kind)(**settings)
    except (TypeError, ValueError) as refusal:
        if paper in TAKEN:
            assert getattr(core, kind)(**settings).lmbda == 1
            return
        with pytest.raises((type(refusal), BadValue)):
            getattr(core, kind)(**settings)
        return
    ours = getattr(core, kind)(**settings)
    follow = {"generation_batch_size", "vllm_importance_sampling_clip_max"} & vars(theirs).keys()
    for name in {*CALLS[kind][paper], *follow}:
        assert getattr(ours, name) == getattr(theirs, name), name


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("mode", ["token_truncate", "sequence_mask"])
def test_an_earlier_name_sets_the_newer_one(mode, tmp_path):
    """The index has it in the calls of TIS and MIS."""
    given = {"vllm_importance_sampling_cap": 2.0, "vllm_importance_sampling_mode": mode}
    ours, theirs = (
        library.GRPOConfig(**given, **HERE, output_dir=str(tmp_path)) for library in (core, trl)
    )
    assert ours.vllm_importance_sampling_clip_max == theirs.vllm_importance_sampling_clip_max == 2.0
    ours.learning_rate = 1e-4
    ours.settle()
    assert ours.vllm_importance_sampling_clip_max == 2.0
    ours.vllm_importance_sampling_clip_max = 4.0
    with pytest.raises(BadValue, match="the earlier name of vllm_importance_sampling_clip_max"):
        ours.settle()


def test_the_names_of_trls_last_ppo_are_taken(tmp_path):
    index = {"num_ppo_epochs": 3, "gamma": 1.0, "lam": 0.95, "kl_coef": 0.05, "vf_coef": 0.1}
    ours = core.PPOConfig(cliprange=0.1, **index, **HERE, output_dir=str(tmp_path))
    assert (ours.epsilon, ours.num_iterations) == (0.1, 3)
    ours.learning_rate = 1e-4
    ours.settle()
    assert (ours.epsilon, ours.num_iterations) == (0.1, 3)
