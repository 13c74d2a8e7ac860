"""``pdrgate notify``: what a run has that was not reported yet."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pdrgate.cli.parameters import PathType, history_option
from pdrgate.history.address import Address
from pdrgate.values.errors import EXIT_PASS, UsageError

if TYPE_CHECKING:
    from pdrgate.news.standing import News, StandingChange


@dataclass(frozen=True, slots=True)
class _Channel:
    """A way by which people hear of news; what was reported is kept for each."""

    name: str
    deliver: Callable[[News], None]
    always: bool = False
    """Whether it is used without news too: it shows what stands."""


@click.command()
@click.argument("run", metavar="RUN", type=PathType())
@click.option("--of", metavar="NAME", default="nightly", show_default=True, help="What this series of runs is called.")
@click.option(
    "--webhook",
    metavar="TEMPLATE",
    default="",
    help="Post to PDRGATE_WEBHOOK: slack, mattermost, matrix, teams, or a file of JSON with {title}, {text}, "
    "{markdown}, {verdict}, {run} and {link} in it.",
)
@click.option(
    "--mail", metavar="ADDRESS", multiple=True, help="Send a mail, by PDRGATE_SMTP or sendmail; say it for each."
)
@click.option(
    "--standing",
    metavar="FILE",
    type=PathType(),
    help="Write all that stands as Markdown, the body of an issue for ci/comment.py --issue; empty when nothing does.",
)
@click.option("--link", metavar="URL", default="", help="Where the run's pages are shown.")
@history_option("where", default="results/history.db", show_default=True, help="Where is kept what was reported.")
def notify(
    run: Path, of: str, webhook: str, mail: tuple[str, ...], standing: Path | None, link: str, where: Address
) -> int:
    """Report what RUN has that was not reported yet: a change that appeared, that went, or whose reason changed.

    A change that stands is not reported again while its verdict, its measurand and the functions that it lies in are
    the same, and its size is within the tolerance of what was reported. An undecided run changes nothing. A fault of
    the testbed is news of its own. Without --webhook, --mail and --standing the news are printed.

    What was reported is kept in the history, for each way by itself. News that could not be delivered are reported by
    the next run.

    Exits with 2 when news were not delivered.
    """
    from pdrgate.history.database.connection import Database
    from pdrgate.history.database.reported import report, reported
    from pdrgate.history.results import read_result
    from pdrgate.news.standing import news_of
    from pdrgate.values.errors import PdrGateError

    result = read_result(run)
    channels = list(_channels(of, webhook, mail, standing, link))
    failed: PdrGateError | None = None
    with Database.open(where, create=True) as history:
        for channel in channels:
            with history.writing() as connection:
                known = {name: _change(text) for name, text in reported(connection, channel.name, of).items()}
            news = news_of(result, known)
            try:
                if news.items or channel.always:
                    channel.deliver(news)
            except UsageError:
                raise
            except PdrGateError as error:
                failed = failed or error
                continue
            stored = {name: _text(one) for name, one in news.standing.items()}
            with history.writing() as connection:
                report(connection, channel.name, of, stored)
    if failed is not None:
        raise failed
    return EXIT_PASS


def _channels(of: str, webhook: str, mail: tuple[str, ...], standing: Path | None, link: str) -> list[_Channel]:
    from pdrgate.history.whole_file import write_whole
    from pdrgate.news import mail as mails
    from pdrgate.news import webhook as webhooks
    from pdrgate.news import words

    found: list[_Channel] = []
    if webhook:
        url, token = (os.environ.get(name, "") for name in (webhooks.WEBHOOK_VARIABLE, webhooks.TOKEN_VARIABLE))
        if not url:
            raise UsageError(f"--webhook: the environment's {webhooks.WEBHOOK_VARIABLE} names no address; set it")
        template = webhooks.webhook_template(webhook)

        def post(news: News) -> None:
            values = {
                "title": words.title(news, of), "text": words.text(news, link), "link": link, "run": news.run,
                "markdown": words.markdown(news, link), "verdict": news.headline.partition(":")[0],
            }  # fmt: skip
            webhooks.post(url, token, webhooks.filled(template, values))

        found.append(_Channel(f"webhook {hashlib.sha256(url.encode()).hexdigest()[:12]}", post))
    if mail:

        def send(news: News) -> None:
            sender = os.environ.get(mails.FROM_VARIABLE, "")
            mails.send(mails.message(words.title(news, of), words.text(news, link), sender, mail), os.environ)

        found.append(_Channel(f"mail {' '.join(sorted(mail))}", send))
    if standing is not None:

        def write(news: News) -> None:
            write_whole(standing, words.standing_markdown(news).encode())

        found.append(_Channel("standing", write, always=True))
    if not found:

        def show(news: News) -> None:
            click.echo(words.title(news, of))
            click.echo(words.text(news, link))

        found.append(_Channel("text", show))
    return found


def _change(text: str) -> StandingChange:
    import msgspec

    from pdrgate.news.standing import StandingChange
    from pdrgate.values.errors import DataError

    try:
        return msgspec.json.decode(text, type=StandingChange)
    except msgspec.MsgspecError as error:
        raise DataError("the history holds a reported change that is none; name another with --history") from error


def _text(change: StandingChange) -> str:
    import dataclasses

    return json.dumps(dataclasses.asdict(change))
