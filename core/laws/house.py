"""Laws that hold of the losses of all papers; each is a claim that no run is needed to judge."""

from core.claims import Claim, law
from core.claims.laws import Law

ROUNDING = 1e-6  # a temperature or a deviation may be rounded to 32 bits


def _equal(slug: str, statement: str, function: str) -> Claim:
    errors: Law = law(f"core.{function}")
    return Claim(slug, statement, errors.about(0.0, within=ROUNDING))


LAWS: tuple[Claim, ...] = (
    _equal(
        "ratios",
        "Ratios of tokens and completions are the quotients, products and geometric means stated.",
        "equations.surrogate_equations:ratio_errors",
    ),
    _equal(
        "surrogates",
        "The loss of a token is that of its paper's equation, at any ratio and either sign of A.",
        "equations.surrogate_equations:surrogate_errors",
    ),
    _equal(
        "means",
        "Token losses are averaged as the paper of each aggregate states.",
        "equations.mean_equations:aggregate_errors",
    ),
    _equal(
        "logged-clips",
        "The tokens that are logged as clipped are those that the clip leaves without gradient.",
        "equations.logged_clips:clip_errors",
    ),
    _equal(
        "logged-caps",
        "The tokens that are logged as capped are those whose weight is CISPO's cap.",
        "equations.logged_clips:cap_errors",
    ),
    _equal(
        "rare-tokens",
        "A rare token has a probability below 0.1; its rise is the difference of probabilities.",
        "equations.logged_clips:rare_errors",
    ),
    _equal(
        "advantages",
        "Rewards become advantages by the baseline and deviation stated; an absent one counts 0.",
        "equations.advantage_equations:aggregation_errors",
    ),
    _equal(
        "estimators",
        "Every estimator of completions gives the advantage that its paper states.",
        "equations.advantage_equations:estimator_errors",
    ),
    _equal(
        "step-advantages",
        "A token's advantage is the sum of the scores of steps that end at it or later.",
        "equations.advantage_equations:process_errors",
    ),
    _equal(
        "token-advantages",
        "Rewards to go and generalised advantages of tokens are the stated sums, whitened.",
        "equations.return_equations:token_errors",
    ),
    _equal(
        "rewards-of-tokens",
        "A trained token is paid minus its weighted KL, the last one the outcome as well.",
        "equations.return_equations:placed_errors",
    ),
    _equal(
        "whitening",
        "Nearly equal numbers are divided by sqrt(variance + 1e-8); a single one becomes 0.",
        "equations.return_equations:small_spread_errors",
    ),
    _equal(
        "sampling-weights",
        "Weights against the engine's policy are bounded, masked or rejected as stated.",
        "equations.weight_equations:weight_errors",
    ),
    _equal(
        "off-policy-mask",
        "Bad answers are left out if their drift from the sampler exceeds the threshold.",
        "equations.weight_equations:near_errors",
    ),
    _equal(
        "entropy-selection",
        "A share of tokens by entropy is that with the greatest, or with the least.",
        "equations.weight_equations:entropy_errors",
    ),
    _equal(
        "selections",
        "The completions selected of a group are the varied, shortest or most efficient ones.",
        "equations.weight_equations:selection_errors",
    ),
    _equal(
        "kl-estimates", "The KL estimates are k1, k2 and k3.", "equations.mean_equations:kl_errors"
    ),
    _equal(
        "kl-penalty",
        "The KL is added to the loss with its weight, and with the ratio if it is corrected.",
        "equations.mean_equations:penalised_errors",
    ),
    _equal(
        "adaptive-kl",
        "The KL weight is halved below two thirds of the target, doubled above three halves of it.",
        "equations.mean_equations:adaptive_kl_errors",
    ),
    _equal(
        "supervised-losses",
        "Labelled tokens cost -log pi, and pi times that in dynamic fine-tuning.",
        "equations.mean_equations:supervised_errors",
    ),
    _equal(
        "value-losses",
        "The loss of a value, its clip and the explained variance are those of PPO's code.",
        "equations.mean_equations:value_errors",
    ),
    _equal(
        "perception",
        "PAPO's objective is gamma KL - eta H - eta' H'.",
        "equations.mean_equations:perception_errors",
    ),
    _equal(
        "implicit-rewards",
        "The implicit reward of a completion is beta times the sum of its log ratios.",
        "equations.mean_equations:implicit_errors",
    ),
    _equal(
        "preferences",
        "The loss of a pair is that of its paper's equation, also where long answers count less.",
        "equations.preference_equations:loss_errors",
    ),
    _equal(
        "divergences",
        "The score of an answer is the derivative of its divergence at the ratio of the policies.",
        "equations.preference_equations:divergence_errors",
    ),
    _equal(
        "pairs-of-a-step",
        "Losses of several pairs have one value and gradient in any micro-batches of a step.",
        "equations.preference_equations:step_errors",
    ),
    _equal(
        "pair-weights",
        "Losses of a pair are summed by their weights, and multiplied by WPO's of both answers.",
        "equations.preference_equations:weight_errors",
    ),
    _equal(
        "pairs-alone",
        "The loss of a pair without a reference is that of its paper's equation.",
        "equations.reference_free_equations:reference_free_errors",
    ),
    _equal(
        "labelled-answers",
        "The loss of a labelled answer is that of its paper's equation, at any shift of rewards.",
        "equations.label_equations:loss_errors",
    ),
    _equal(
        "reference-point",
        "KTO's reference point is the mean log ratio of mismatched answers, or 0 if that is less.",
        "equations.label_equations:baseline_errors",
    ),
    _equal(
        "pair-rewards",
        "A reward model pays -log sigma of the gap less its margin, and the squared sum weighted.",
        "equations.scoring_equations:pair_errors",
    ),
    _equal(
        "step-labels",
        "The label of a step costs -log of its probability among all labels.",
        "equations.scoring_equations:step_errors",
    ),
    _equal(
        "token-values",
        "The value of a token costs its squared distance from the label of the solution.",
        "equations.scoring_equations:value_errors",
    ),
    _equal(
        "online-pairs",
        "The loss of a sampled pair is that of its paper's equation, XPO's with its bonus.",
        "equations.online_equations:online_errors",
    ),
    _equal(
        "alignments",
        "What the weights of WPO compare log-probabilities with is that of the paper's equations.",
        "equations.preference_equations:alignment_errors",
    ),
    _equal(
        "nash-md",
        "The loss of Nash-MD is that of its paper's equation, and of TRL's weight of the KL.",
        "equations.online_equations:nash_errors",
    ),
    _equal(
        "mixtures",
        "A geometric mixture has the probabilities p^(1 - share) q^share / Z.",
        "equations.online_equations:mixture_errors",
    ),
    _equal(
        "divergences",
        "Divergences of a vocabulary, and of its likeliest tokens with a bucket for the others or "
        "renormalised, are those of plain probabilities, some of which are 0.",
        "equations.distillation_equations:divergence_errors",
    ),
    _equal(
        "divergence-gradients",
        "A token that is impossible under both models, and one that is not trained, changes no "
        "gradient of a divergence.",
        "equations.distillation_equations:gradient_changes",
    ),
    _equal(
        "distilled-tokens",
        "Returns, weights by place and capped ratios of distilled tokens are those of equations.",
        "equations.distillation_equations:token_errors",
    ),
    _equal(
        "aligned-groups",
        "Tokens with text are grouped up to the bytes at which both sides end; entries of both "
        "vocabularies have a divergence, the others a sorted distance.",
        "equations.distillation_equations:group_errors",
    ),
    _equal(
        "hints",
        "An answer has a hint if another one of its group succeeded, or if it has feedback.",
        "equations.distillation_equations:hint_errors",
    ),
    _equal(
        "padding",
        "Padding behind the end of a completion changes no loss and no gradient.",
        "laws.padding:padding_changes",
    ),
)
