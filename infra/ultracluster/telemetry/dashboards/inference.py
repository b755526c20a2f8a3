"""Inference servers: vLLM and SGLang."""

from ultracluster.telemetry.dashboards.panels import Board, Limits, Lines, Query, Row, Value

TTFT = Limits(1, 3)
ITL = Limits(0.05, 0.1)
CACHE = Limits(0.9, 0.97)


def _quantile(quantile: float, metric: str) -> str:
    """A quantile of both engines' histograms, for each model."""
    rates = (
        f"sum by (le, model_name) (rate({engine}:{metric}_bucket{{models}}[$__rate_interval]))"
        for engine in ("vllm", "sglang")
    )
    return f"histogram_quantile({quantile}, {' or '.join(rates)})"


def _latency(title: str, metric: str, help: str, limits: Limits) -> Lines:
    return Lines(
        title=title,
        help=help,
        queries=tuple(
            Query(_quantile(quantile, metric), f"{{{{model_name}}}} p{100 * quantile:g}")
            for quantile in (0.5, 0.95, 0.99)
        ),
        unit="s",
        limits=limits,
    )


def _either(vllm: str, sglang: str) -> str:
    """Each model's sum of a gauge that the engines call by different names."""
    return f"sum by (model_name) (vllm:{vllm}{{models}}) or sum by (model_name) (sglang:{sglang}{{models}})"


def _tokens(counter: str) -> str:
    """Each model's tokens per second."""
    rates = (
        f"sum by (model_name) (rate({engine}:{counter}{{models}}[$__rate_interval]))" for engine in ("vllm", "sglang")
    )
    return " or ".join(rates)


NOW = Row(
    "",
    (
        Value(
            title="Time to first token, p95",
            query=Query(f"max({_quantile(0.95, 'time_to_first_token_seconds')})"),
            help="Of the slowest model: 95 % of requests got their first token within this time.",
            unit="s",
            limits=TTFT,
        ),
        Value(
            title="Inter-token latency, p95",
            query=Query(f"max({_quantile(0.95, 'inter_token_latency_seconds')})"),
            help="Of the slowest model: time between two tokens of an answer.",
            unit="s",
            limits=ITL,
        ),
        Value(
            title="Tokens generated per second",
            query=Query(f"sum({_tokens('generation_tokens_total')})"),
            help="Tokens per second of all models.",
            unit="short",
        ),
        Value(
            title="Requests running",
            query=Query("sum(vllm:num_requests_running{models} or sglang:num_running_reqs{models})"),
            help="Requests that generate tokens now.",
            decimals=0,
        ),
        Value(
            title="Requests waiting",
            query=Query("sum(vllm:num_requests_waiting{models} or sglang:num_queue_reqs{models})"),
            help="Requests that wait for room in a batch.",
            decimals=0,
            limits=Limits(10, 100),
        ),
        Value(
            title="Fullest KV cache",
            query=Query("max(vllm:kv_cache_usage_perc{models} or sglang:token_usage{models})"),
            help="When the cache is full, requests are preempted and computed again.",
            unit="percentunit",
            decimals=0,
            limits=CACHE,
        ),
    ),
)

LATENCY = Row(
    "What users feel",
    (
        _latency(
            "Time to first token",
            "time_to_first_token_seconds",
            "From the request to its first token: waiting and prefill.",
            TTFT,
        ),
        _latency("Inter-token latency", "inter_token_latency_seconds", "Time between two tokens of an answer.", ITL),
        _latency("Whole request", "e2e_request_latency_seconds", "From the request to its last token.", Limits()),
    ),
)

LOAD = Row(
    "Load",
    (
        Lines(
            title="Tokens per second",
            help="Tokens read (prompt) and written (generated).",
            queries=(
                Query(_tokens("generation_tokens_total"), "{{model_name}} generated"),
                Query(_tokens("prompt_tokens_total"), "{{model_name}} prompt"),
            ),
        ),
        Lines(
            title="Requests running and waiting",
            help="A queue that grows needs replicas, or a larger cache.",
            queries=(
                Query(_either("num_requests_running", "num_running_reqs"), "{{model_name}} running"),
                Query(_either("num_requests_waiting", "num_queue_reqs"), "{{model_name}} waiting"),
            ),
            decimals=0,
        ),
        Lines(
            title="Requests finished per second, by reason",
            help="stop: the model ended; length: cut at the limit; abort: the client left. vLLM only.",
            queries=(
                Query(
                    "sum by (finished_reason) (rate(vllm:request_success_total{models}[$__rate_interval]))",
                    "{{finished_reason}}",
                ),
            ),
            unit="reqps",
            stack=True,
        ),
    ),
)

CACHES = Row(
    "Caches",
    (
        Lines(
            title="KV cache in use",
            help="Share of the blocks that hold tokens.",
            queries=(
                Query(
                    "max by (model_name) (vllm:kv_cache_usage_perc{models}) or max by (model_name)"
                    " (sglang:token_usage{models})",
                    "{{model_name}}",
                ),
            ),
            unit="percentunit",
            maximum=1,
            limits=CACHE,
        ),
        Lines(
            title="Prefix cache hits",
            help="Share of prompt tokens that were found in the cache.",
            queries=(
                Query(
                    "sum by (model_name) (rate(vllm:prefix_cache_hits_total{models}[$__rate_interval])) / sum by"
                    " (model_name) (rate(vllm:prefix_cache_queries_total{models}[$__rate_interval]))"
                    " or avg by (model_name) (sglang:cache_hit_rate{models})",
                    "{{model_name}}",
                ),
            ),
            unit="percentunit",
            maximum=1,
        ),
        Lines(
            title="Preemptions per minute",
            help="Requests thrown out of a full cache and computed again. vLLM only.",
            queries=(
                Query(
                    "60 * sum by (model_name) (rate(vllm:num_preemptions_total{models}[$__rate_interval]))",
                    "{{model_name}}",
                ),
            ),
            limits=Limits(warning=1),
        ),
    ),
)

BOARD = Board(
    slug="inference",
    title="Inference",
    question="Do users wait, and for what?",
    rows=(NOW, LATENCY, LOAD, CACHES),
    variables=("model",),
    period="24h",
    tags=("inference",),
)
