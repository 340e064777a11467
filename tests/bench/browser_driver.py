"""One episode after another with one tool: what the rules call, and what it costs."""

import re
import time
from dataclasses import dataclass, field

from browser_page import Page
from browser_rules import RULES, Unsolved
from browser_tools import Broken

# How long a page may take to show the effect of an action on a busy machine.
PAGE_TIMEOUT = 5.0


@dataclass
class Cost:
    actions: int = 0
    seconds: float = 0.0
    bytes: int = 0
    clicks: int = 0
    failed: list = field(default_factory=list)


class Driver:
    """A task at work. `page` is what the tool has shown last, or shows now where it has said nothing since."""

    def __init__(self, door, kind):
        self.door, self.kind, self.cost = door, kind, Cost()
        self.known = None

    @property
    def page(self):
        if self.known is None:
            self.look()
        return self.known

    def look(self):
        self._take(*self._timed(self.door.look), False)
        return self.known

    def open(self, url):
        self._take(*self._timed(self.door.open, url), True)

    def _timed(self, call, *arguments):
        begun = time.monotonic()
        answer = call(*arguments)
        return answer, time.monotonic() - begun

    def _take(self, answer, seconds, is_action):
        self.cost.bytes += len(answer.text.encode())
        self.cost.actions += is_action
        self.cost.seconds += seconds
        if not answer.is_done:
            self.cost.failed.append(answer.text[:300])
        self.known = self.door.page(answer.text, self.known) if answer.shows_page else None

    def _act(self, kind, *arguments):
        answer, seconds = self._timed(getattr(self.door, kind), *arguments)
        self._take(answer, seconds, True)
        if kind == "click" and answer.is_done:
            self.cost.clicks += 1
        return answer

    def click(self, node):
        return self._act("click", node)

    def finish(self, node):
        """The click that ends the episode: the cover of the next one has to come."""
        return self._act("click", node, "START")

    def fill(self, node, text):
        return self._act("fill", node, text)

    def type(self, node, text):
        return self._act("type", node, text)

    def select(self, node, values):
        return self._act("select", node, values)

    def press(self, key, node=None):
        return self._act("press", key, node)

    def hover(self, node):
        return self._act("hover", node)

    def drag(self, node, to):
        return self._act("drag", node, to)

    def scroll(self, node, to):
        return self._act("scroll", node, to)

    def whole(self, node):
        """The value of a field in full."""
        answer, seconds = self._timed(self.door.whole, node)
        if answer is None:
            return node.value or node.name
        self.cost.bytes += len(answer.text.encode())
        self.cost.seconds += seconds
        shown = self.door.page(answer.text, Page()).nodes
        return next((it.value or it.name for it in shown if it.ref == node.ref), node.value)

    def until(self, found):
        """What is found once a page shows it."""
        deadline = time.monotonic() + PAGE_TIMEOUT
        while True:
            seen = found(self.page)
            if seen:
                return seen
            if time.monotonic() > deadline:
                raise Unsolved("it does not come")
            time.sleep(0.1)
            self.look()

    def is_over(self):
        return bool(re.search(r"\bSTART\b", self.page.text))


def episode(door, site, kind, seed):
    """Solves a task, and says what it came to: solved, cost, why not."""
    run = f"{door.name}-{kind}-{seed}-{time.monotonic_ns()}"
    driver, why = Driver(door, kind), ""
    try:
        driver.open(site.address(kind, seed, run))
        RULES[kind](driver)
    except (Unsolved, IndexError, ValueError, StopIteration, KeyError, TypeError) as error:
        why = f"{type(error).__name__}: {error}"
    except Broken as error:
        why = str(error)
    told = site.reward(run, 0.2 if why else 3)
    solved = bool(told) and told["reward"] == 1
    falsely = max(0, driver.cost.clicks - told["clicks"]) if told else 0
    if not solved and not why:
        why = f"reward {told['reward']}" if told else "the episode did not end"
    return {"kind": kind, "seed": seed, "solved": solved, "falsely_done": falsely, "why": why, **vars(driver.cost)}

