"""The planner: which groups to test in the next round, from all that the rounds before have shown.

1. The whole fleet. Green: done, with one test.
2. Hosts that the failed test itself named are left out, and the rest is tested.
3. Otherwise both halves of the rest. If one fails, a hunt goes on in it alone, with wide steps. If both do
   there are several faults: all is screened in groups, and a hunt starts in each that fails (``narrow``).
4. Where each host of a group that fails is good, what is broken is a pair: it is sought by halving both of its
   sides at once, and in several places at the same time (``pairs``); where more is broken, among the pairs of
   the group that nothing has proven yet (``scattered``).
5. What nobody is after any more is tested together, also while hunts go on: a second broken pair shows early.
   Where a single fault shows it joins the tests of the one hunt instead (``company``).
   So until every two hosts that are not accused were once in a group that worked. Only then is nothing left.
6. Nobody is accused by a single test: what a hunt ends with is looked at again (``review``). Where tests
   contradict each other, since one of them ended the wrong way, all begins anew but for what was found.

The tests of a round have no host in common, so that they run at the same time without disturbing each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from remedy.verify.isolate.accused import Accused
from remedy.verify.isolate.company import joined, untried
from remedy.verify.isolate.evidence import Evidence, new_suspects
from remedy.verify.isolate.hunt import Question, Reply, Span, Steps, accuse, links_between, recheck
from remedy.verify.isolate.model import Fault, Test, TestResult
from remedy.verify.isolate.narrow import hunt
from remedy.verify.isolate.pairs import between
from remedy.verify.isolate.review import again_broken, failed_with, review, settled
from remedy.verify.isolate.scattered import scattered
from remedy.verify.isolate.steps import Active, Begin, End, going_on, in_turn, portions

# A fleet that fails is tested in so many parts first, at once.
HALVES = 2
# Groups where both halves fail: enough that five faults among 232 hosts mostly fall into different ones, and
# few enough that a single one is not paid for with many tests.
SCREEN = 16
SMALLEST = 4
# Tests of a round that all hunts share: of three hunts each has four suspects at the end, of six two.
SHARED = 12
# Hunts that may end without a fault before the trouble is called one that comes and goes.
VAIN = 4
# How often the search may begin anew where tests contradict each other.
ANEW = 2
COMES_AND_GOES = "groups fail now and work then: the trouble comes and goes"
# More rounds than eight broken pairs among 2,048 hosts need, found one after the other.
ROUNDS = 300
# Rounds of pairs that are tried where no two hosts were seen to work together.
SEEKING = 4
# Good hosts that are kept out of a test of the rest for each hunt, which may need them as partners.
RESERVE = 1


class Isolation:
    """One isolation, from the whole fleet to its faults.

    Args:
        hosts: at least two, neighbours in the network next to each other.
        screen: into how many groups a failing fleet is split.

    Attributes:
        rounds: how many rounds were held.
        unexplained: a sentence where the tests contradict each other or nothing works.
    """

    def __init__(self, hosts: Sequence[str], screen: int = SCREEN) -> None:
        self.hosts = tuple(hosts)
        self.rounds = 0
        self.unexplained = ""
        self._screen = screen
        self._evidence = Evidence(self.hosts)
        self._accused = Accused()
        self._results: list[TestResult] = []
        self._hunts: list[Active] = []
        self._asked: dict[Test, tuple[Active, Question] | None] = {}
        self._doubted: dict[str, frozenset[str]] = {}
        self._followed: dict[str, frozenset[str]] = {}
        self._to_screen = 0
        self._screened = False
        self._width = SHARED
        self._several = self._paired = False
        self._sought = 0
        self._vain = 0
        self._anew = 0
        self._hunted: dict[tuple[str, ...], int] = {}
        self._rechecked: set[Fault] = set()

    @property
    def faults(self) -> list[Fault]:
        """What was found so far."""
        return self._accused.faults

    @property
    def results(self) -> tuple[TestResult, ...]:
        """All results so far."""
        return tuple(self._results)

    @property
    def untested(self) -> tuple[str, ...]:
        """Hosts that are not accused and were never in a group that worked."""
        accused = {host for fault in self.faults for host in fault.hosts}
        return tuple(h for h in self.hosts if h not in accused and not self._evidence.good(h))

    def next_round(self) -> tuple[Test, ...]:
        """Return the tests to hold now; none when everything is known."""
        if not self.results:
            self._asked = {Test(self.hosts, "fleet"): None}
            return tuple(self._asked)
        self._asked = {}
        while not self._asked and not self.unexplained:
            self._take_up_doubted()
            if not self._hunts and self._screened and not self._to_screen:
                self._take_up_failed()
            busy = self._ask_hunts()
            busy |= self._invite(busy)
            for test in self._pool(busy):
                self._asked[test] = None
            if self._asked:
                break
            if self._hunts:
                self._seek()
            elif not self._last_doubts():
                break
        if not self._asked and not self.faults and not all(r.passed for r in self._results):
            self.unexplained = self.unexplained or COMES_AND_GOES
        return tuple(self._asked)

    def take(self, results: Iterable[TestResult]) -> None:
        """Take the results of the round."""
        self.rounds += 1
        if self.rounds >= ROUNDS:
            self.unexplained = COMES_AND_GOES
        results = [*results]
        for result in results:
            self._results.append(result)
            self._evidence.add(result)
        good = sum(map(self._evidence.good, self.hosts))
        hunts = going_on(results, self._asked, self._hunts)
        self._several |= hunts > 1 or bool(self.faults)
        self._width = min(SHARED, good) // hunts
        failed = []
        for result in results:
            asked = self._asked.get(result.test)
            if asked is not None:
                active, ask = asked
                partner = set(result.test.hosts).difference(ask.hosts) if ask.partner else ()
                self._reply(active, ask, Reply(result.passed, result, next(iter(partner), None)))
            elif not result.passed:
                failed.append(result)
        halves = [result for result in results if result.test.purpose == "screen"]
        groups = min(self._screen, len(self._free_hosts(set())) // SMALLEST)
        if len(halves) == HALVES < groups and not any(half.passed for half in halves):
            self._to_screen, failed = groups, []
        for result in failed:
            self._look_into(result)

    def _look_into(self, result: TestResult) -> None:
        """Decide what to do about a group that failed and that no hunt had asked for."""
        hosts = result.test.hosts
        if result.test.purpose == "seek":
            return
        if len(self.hosts) == 2:
            self._start(partial(links_between, *hosts), hosts)
            return
        if result.test.purpose in ("fleet", "rest"):
            suspects = new_suspects(result, self._followed, self._evidence)
            if suspects and 2 * (len(suspects) + len(self._doubted)) < len(self.hosts):
                self._doubted |= suspects
                return
            if not self._screened and len(hosts) >= HALVES * SMALLEST:
                self._to_screen = HALVES
                return
        self._hunt(hosts)

    def _take_up_failed(self) -> None:
        """Hunt in the smallest group that failed and that no fault explains yet."""
        doubted = self._doubted.keys()
        unexplained = [
            hosts for hosts in self._evidence.unexplained(self.faults) if doubted.isdisjoint(hosts)
        ]
        fresh = [
            hosts
            for hosts in unexplained
            if (gaps := self._evidence.gaps(hosts)) and gaps < self._hunted.get(hosts, gaps + 1)
        ]
        if fresh:
            self._hunt(min(fresh, key=len))
        elif unexplained:
            self._begin_anew()

    def _begin_anew(self) -> None:
        """Forget the tests, which contradict each other, and keep the faults; all the rest is next."""
        self._anew += 1
        if self._anew > ANEW:
            self.unexplained = COMES_AND_GOES
        self._evidence = Evidence(self.hosts)
        self._screened, self._sought = False, 0
        self._followed, self._hunted = {}, {}
        self._rechecked.update(fault for fault in self.faults if fault.is_host)

    def _hunt(self, hosts: Sequence[str]) -> None:
        """Begin a hunt in a group that failed: for pairs alone where each of its hosts is good."""
        self._hunted[tuple(hosts)] = self._evidence.gaps(hosts)
        parts = self._evidence.parts(hosts) if all(map(self._evidence.good, hosts)) else ()
        if len(parts) > 1 and self._several:
            self._paired = True
            self._begin(partial(scattered, hosts, self._evidence), hosts)
        elif len(parts) > 1:
            whole = len(hosts) == len(self.hosts)
            self._begin(partial(between, parts, whole=whole), hosts)
        else:
            line, known = self._evidence.line(hosts, self._spans() | self._accused.hosts)
            self._begin(partial(hunt, line, known), line)

    def _start(
        self, steps: Callable[[], Steps], hosts: Iterable[str], *, sure: bool = True
    ) -> None:
        """Begin a hunt that asks one question a round."""
        self._begin(lambda _: in_turn(steps()), hosts, sure=sure)

    def _begin(
        self, begin: Begin, hosts: Iterable[str], *, sure: bool = True, last: bool = False
    ) -> None:
        """Begin a hunt."""
        span = Span(frozenset(hosts), evidence=self._evidence)
        active = Active(begin(span), span, sure, last)
        self._hunts.append(active)
        self._step(active, None)

    def _reply(self, active: Active, ask: Question, reply: Reply) -> None:
        """Give a hunt a reply; once it has them all it goes on."""
        active.replies[ask] = reply
        if not active.open:
            self._step(active, [active.replies[ask] for ask in active.asks])

    def _step(self, active: Active, replies: Sequence[Reply] | None) -> None:
        """Let a hunt ask again, or take what it ended with."""
        try:
            active.span.width, active.span.joined = self._width, not self._several
            active.asks = next(active.steps) if replies is None else active.steps.send(replies)
            active.replies = {}
        except StopIteration as end:
            self._hunts.remove(active)
            self._end(active, end.value)

    def _end(self, active: Active, ends: Sequence[End]) -> None:
        """Take the faults of a hunt that is over, and begin those that go on from it."""
        new = [self._accuse(end, last=active.last) for end in ends if isinstance(end, Fault)]
        further = [end for end in ends if not isinstance(end, Fault)]
        for begin in further:
            self._begin(begin, ())
        if active.sure and not further and not any(new):
            self._vain += 1
        if self._vain > VAIN:
            self.unexplained = COMES_AND_GOES

    def _accuse(self, fault: Fault, *, last: bool) -> bool:
        """Accuse, or look once more where too few tests speak for it; returns whether that is anything new."""
        if self._accused.explains(fault):
            return False
        enough = last or settled(fault, self._evidence)
        doubtful = [] if last else again_broken(fault, self._evidence, self.faults)
        if enough and not doubtful:
            self._accused.add(fault, self._evidence)
            return True
        look = review(fault, failed_with(fault.hosts[0], self._evidence), doubtful, enough=enough)
        self._begin(lambda _: look, fault.hosts, sure=False, last=True)
        return True

    def _spans(self) -> set[str]:
        """The hosts that hunts are after."""
        return {host for active in self._hunts for host in active.span.hosts}

    def _ask_hunts(self) -> set[str]:
        """Put the questions of the hunts into the round; returns the hosts that are not free for others."""
        used: set[str] = set()
        # Those that need no partner first: a partner may be lent from their hosts, but not while they are used.
        for active in sorted(self._hunts, key=lambda active: active.asks[0].partner):
            for ask in active.open:
                if ask not in active.open:
                    continue  # the hunt has gone on meanwhile
                test, asked = self._test_of(active, ask, used)
                if test is not None:
                    self._asked[test] = (active, asked)
                    used.update(test.hosts)
        return used | self._spans()

    def _test_of(
        self, active: Active, ask: Question, used: set[str]
    ) -> tuple[Test | None, Question]:
        """The test for a hunt's question, or for the next one that needs a test; None where it has to wait."""
        while active in self._hunts:
            if used.intersection(ask.hosts):
                return None, ask
            if not ask.partner:
                return Test(ask.hosts, ask.purpose), ask
            suspect = ask.hosts[0]
            if self._evidence.good(suspect) and not ask.again:
                # It worked with others already: no fault of its own.
                self._reply(active, ask, Reply(passed=True))
                ask = next(iter(active.open), ask)
                continue
            good = self._good_for(ask)
            partner = self._free(good, active, ask, used)
            if partner is not None:
                return Test((suspect, partner), ask.purpose), ask
            if good or self._sought < SEEKING:
                return None, ask
            self._reply(active, ask, Reply(passed=False))
            ask = next(iter(active.open), ask)
        return None, ask

    def _good_for(self, ask: Question) -> list[str]:
        """The good hosts that may be the partner which a question asks for."""
        suspect = ask.hosts[0]
        never = ask.never | self._accused.partners_of(suspect) | self._accused.hosts
        return [host for host in self._evidence.partners(suspect) if host not in never]

    def _free(
        self, good: Sequence[str], active: Active, ask: Question, used: set[str]
    ) -> str | None:
        """The partner to take now; a host that another hunt is after is lent where there is no other."""
        known = [host for host in good if host not in used]
        reserved = {h for rival in self._hunts if rival is not active for h in rival.span.hosts}
        free = [host for host in known if host not in reserved] or known
        free = [host for host in free if host not in ask.avoid] or free
        # One that has least to prove itself: all others can be tested together meanwhile.
        return min(free, key=self._evidence.unseen, default=None)

    def _free_hosts(self, busy: set[str]) -> list[str]:
        """The hosts that nobody is after."""
        out = self._accused.hosts | set(self._doubted) | busy
        return [host for host in self.hosts if host not in out]

    def _invite(self, busy: set[str]) -> set[str]:
        """Let free hosts join the tests of the only hunt; returns who does."""
        if self._several or self.faults or len(self._hunts) != 1:
            return set()
        free = [host for host in self._free_hosts(busy) if self._evidence.good(host)]
        tests = {test: asked[1] for test, asked in self._asked.items() if asked is not None}
        more = joined(tests, free, self._evidence)
        self._asked = {more.get(test, test): asked for test, asked in self._asked.items()}
        return {host for test in more.values() for host in test.hosts}

    def _pool(self, busy: set[str]) -> list[Test]:
        """Tests of the hosts that nobody is after."""
        free = self._free_hosts(busy)
        if self._to_screen:
            count, self._to_screen, self._screened = self._to_screen, 0, True
            return [Test(part, "screen") for part in portions(free, count) if len(part) > 1]
        hunting = sum(not active.last for active in self._hunts)
        if hunting > 1:
            reserve = [host for host in free if self._evidence.good(host)][: RESERVE * hunting]
            free = [host for host in free if host not in reserve]
        evidence, apart = self._evidence, self._accused.pairs
        groups: list[list[str]] = []
        if hunting or self._several:
            groups = evidence.meanwhile(free, apart, several=hunting > 1, paired=self._paired)
        if not hunting and (not groups or all(map(evidence.good, free))):
            groups = evidence.unproven(free, apart, filled=not self._hunts)
        return [Test(tuple(sorted(g, key=evidence.place.__getitem__)), "rest") for g in groups]

    def _take_up_doubted(self) -> None:
        """Take up the hosts that a failed test named, once there are good partners for them."""
        if not self._doubted or not any(map(self._evidence.good, self.hosts)):
            return
        for suspect, hinted in self._doubted.items():
            self._start(
                partial(accuse, suspect, sorted(hinted), self.hosts), (suspect,), sure=False
            )
        self._doubted = {}

    def _last_doubts(self) -> bool:
        """Take up what is left when nothing else is; returns whether there was anything."""
        if self._doubted:
            self._doubted = {}
            return True
        for fault in [fault for fault in self.faults if fault.is_host]:
            doubts = self._evidence.doubts(fault, self.faults)
            if doubts is not None and fault not in self._rechecked:
                self._rechecked.add(fault)
                self._accused.withdraw(fault)
                self._start(partial(recheck, fault, doubts), fault.hosts, sure=False)
        return bool(self._hunts)

    def _seek(self) -> None:
        """Try pairs, in the hope of two hosts that work together; without any, no fault can be located."""
        self._sought += 1
        free = [host for host in self.hosts if host not in self._accused.hosts]
        for pair in untried(free, self._evidence.failed):
            self._asked[Test(pair, "seek")] = None
