"""Upload of trained models to the Hugging Face hub, each with its model card."""

from collections.abc import Sequence
from typing import Any

from huggingface_hub import HfApi
from huggingface_hub.utils import HFValidationError, validate_repo_id

from core.errors import HubError
from core.families.table import find_family
from core.records.found import model_of
from core.records.schema import Record, runs_of
from core.run.request import Order
from core.trainers.publish import reaching_hub
from eval.errors import BadValue


def check_hub(order: Order, name: str) -> None:
    """Check before anything trains that the models of an order can be uploaded under a name.

    Raises:
        BadValue: the name is not OWNER/NAME, or an arm trains no model.
        HubError: the hub cannot be reached, or no user is logged in.
    """
    try:
        validate_repo_id(name)
    except HFValidationError as error:
        raise BadValue(f"--push-to-hub {name}: {' '.join(str(error).split())}") from error
    if name.count("/") != 1:
        raise BadValue(f"--push-to-hub {name}: expected OWNER/NAME")
    for arm in order.arms:
        if not find_family(order.paper.family_of(arm)).trains:
            raise BadValue(f"--push-to-hub {name}: the arm {arm} trains no model: leave it out")
    api: Any = HfApi()  # its answer is half typed
    with reaching_hub():
        api.whoami()


def push_models(runs: Sequence[Record], name: str) -> list[str]:
    """Upload the model of every run with its card, and return the addresses.

    Several models get the names NAME-ARM-seedN.

    Raises:
        HubError: the hub refused an upload; the models are still here.
    """
    trained, addresses = runs_of(runs), list[str]()
    for run in trained:
        place = name if len(trained) == 1 else f"{name}-{run['arm']}-seed{run['seed']}"
        try:
            with reaching_hub():
                addresses.append(str(HfApi().create_repo(place, exist_ok=True)))
                HfApi().upload_folder(repo_id=place, folder_path=model_of(run))
        except HubError as error:
            raise HubError(f"{error.args[0]}; the same command sends {place} again") from error
    return addresses
