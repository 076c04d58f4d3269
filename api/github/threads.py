"""Which suggestions people dismissed by resolving their conversations. Only GitHub's GraphQL API knows that."""

from __future__ import annotations

import logging
from typing import Any

from gidgethub import HTTPException

from api.github.client import Client, may_write
from api.github.markers import findings_in

_log = logging.getLogger("wavesmith.github")
_QUERY = """
query ($owner: String!, $name: String!, $number: Int!, $after: String) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      reviewThreads(first: 100, after: $after) {
        pageInfo { hasNextPage endCursor }
        nodes { isResolved resolvedBy { login } comments(first: 1) { nodes { body author { login } } } }
      }
    }
  }
}
"""
_MAX_PAGES = 20


async def resolved_findings(client: Client, repository: str, pull: int, login: str) -> frozenset[str]:
    """Fingerprints of findings whose conversation, begun by `login`, somebody with write access resolved.

    The author of a pull request may resolve too; without write access that silences nothing, so that a change cannot
    pass its own review. Opening the conversation again brings the finding back. Where GraphQL cannot be asked, nothing
    counts as resolved.
    """
    found: set[str] = set()
    writers: dict[str, bool] = {}
    try:
        threads = await _threads(client, repository, pull)
    except HTTPException as e:
        if int(e.status_code) >= 500:
            raise
        _log.warning("conversations of %s#%s cannot be read: %s", repository, pull, e)
        return frozenset()
    for thread in threads:
        first = next(iter((thread.get("comments") or {}).get("nodes") or ()), None) or {}
        author = str((first.get("author") or {}).get("login", ""))
        by = str((thread.get("resolvedBy") or {}).get("login", ""))
        if not thread.get("isResolved") or author != login.removesuffix("[bot]") or not by:
            continue
        if by not in writers:
            writers[by] = await may_write(client, repository, by)
        if writers[by]:
            found.update(findings_in(str(first.get("body") or "")))
    return frozenset(found)


async def _threads(client: Client, repository: str, pull: int) -> list[dict[str, Any]]:
    """Conversations of a pull request; of a bot, GraphQL gives the name without `[bot]`."""
    owner, _, name = repository.partition("/")
    variables: dict[str, Any] = {"owner": owner, "name": name, "number": pull, "after": None}
    threads: list[dict[str, Any]] = []
    for _page in range(_MAX_PAGES):
        answer = await client.post(graphql_url(str(client.base_url)), data={"query": _QUERY, "variables": variables})
        try:
            part = answer["data"]["repository"]["pullRequest"]["reviewThreads"]
        except (KeyError, TypeError):
            _log.warning("conversations of %s#%s cannot be read: %s", repository, pull, str(answer)[:300])
            return threads
        threads += part["nodes"]
        if not part["pageInfo"]["hasNextPage"]:
            break
        variables["after"] = part["pageInfo"]["endCursor"]
    return threads


def graphql_url(api_url: str) -> str:
    """GraphQL's address beside REST's: `/graphql`, and `/api/graphql` beside an Enterprise Server's `/api/v3`."""
    base = api_url.rstrip("/")
    return f"{base.removesuffix('/v3')}/graphql" if base.endswith("/api/v3") else f"{base}/graphql"
