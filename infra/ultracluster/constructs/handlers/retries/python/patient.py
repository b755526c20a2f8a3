"""Handler of the kubectl function that repeats a request while the cluster is not ready for it.

Software becomes ready after its Helm release: KAI's operator creates its webhooks later, Volcano's admission has no
readiness probe, and the API server takes a moment to serve a new CRD. A webhook with failurePolicy Fail refuses every
object until it answers. The CDK's handler, the module `index`, repeats time-outs only.

Source: KAI Scheduler 0.17, pkg/operator/operands; Volcano 1.15, chart volcano; CDK 2.275, kubectl-handler.
"""

import logging
import time
from typing import Any

import index

HELM_RELEASE = "Custom::AWSCDK-EKS-HelmChart"

NOT_READY = ("failed calling webhook", "conversion webhook for", "no matches for kind")
"""Parts of transient errors of kubectl and Helm. The error of a webhook that denies an object has "denied"."""

PATIENCE_SECONDS = 480
PAUSE_SECONDS = 10

RESERVE_SECONDS = {HELM_RELEASE: 750}
"""Time that must be left for another attempt: Helm waits twice for six minutes when it rolls back."""
RESERVE = 90


def handler(event: dict[str, Any], context: Any) -> Any:
    """Answer the request as the CDK's handler does, after as many attempts as it needs."""
    waited, reserve = 0, RESERVE_SECONDS.get(event["ResourceType"], RESERVE)
    while True:
        try:
            return index.handler(event, context)
        except Exception as error:
            left = context.get_remaining_time_in_millis() / 1000
            if waited >= PATIENCE_SECONDS or left < reserve or not any(words in str(error) for words in NOT_READY):
                raise
            logging.getLogger().warning("not ready yet, trying again in %s s: %s", PAUSE_SECONDS, error)
            time.sleep(PAUSE_SECONDS)
            waited += PAUSE_SECONDS
