"""Runs where gevent makes greenlets of threads, as ``gunicorn -k gevent`` and ``celery -P gevent`` do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
from gevent import monkey; monkey.patch_all()
import sys, time
sys.path.insert(0, {tests!r})
import gevent
from scripted import ANSWER, Scripted
from cognitive import CognitiveRuntime, Provider, task

@task
def work(text: str) -> str:
    '''Do it.'''

REPLY = ANSWER.replace('"text"', '"result"')
turns = []

class Blocking(Provider):
    model = "blocking-1"
    def complete(self, request):
        time.sleep(0.05)
        turns.append("model")
        return REPLY

class Later(Provider):
    model = "later-1"
    async def complete(self, request):
        import asyncio
        await asyncio.sleep(0.01)
        return REPLY

class Never(Provider):
    model = "never-1"
    def complete(self, request):
        time.sleep(60)

def own(model):
    return work.with_options(runtime=CognitiveRuntime(providers={{"mine": model}}))

def turn():
    turns.append("other")

other = gevent.spawn_later(0.001, turn)
print(own(Blocking())("x"), own(Later())("x"))
print(turns)
print([part.value for part in own(Blocking()).stream("x")][-1])
print([result.data for result in own(Blocking()).map([{{"text": "x"}}] * 3, concurrency=2)])
jobs = [gevent.spawn(own(Blocking()), "x") for _ in range(3)]
gevent.joinall(jobs)
print([job.value for job in jobs])
try:
    with gevent.Timeout(0.1):
        own(Never())("x")
except gevent.Timeout:
    print("timed out")
"""


def test_greenlets_go_on_while_a_model_works() -> None:
    program = PROGRAM.format(tests=str(Path(__file__).parent))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.splitlines() == [
        "done done", "['other', 'model']", "done", "['done', 'done', 'done']", "['done', 'done', 'done']", "timed out",
    ], done.stderr
