"""A project with very many files: what a server in it costs, beside `rg` and `git` alone."""
import json
import os
import shutil
import statistics
import subprocess
import time

from scale_world import Client, fail, prompt

FOLDERS = 500
WORD = "needle-in-the-hay"


def fill(project, count):
    """So many small files in folders, most of them of one kind; every thousandth holds the word."""
    each = count // FOLDERS
    for folder in range(FOLDERS):
        path = project / f"part{folder % 20}" / f"folder{folder}"
        path.mkdir(parents=True)
        for number in range(each):
            kind = "md" if number % 50 == 7 else "rs"
            word = WORD if (folder * each + number) % 1000 == 3 else "hay"
            (path / f"file{number}.{kind}").write_text(f"// {folder} {number}\nfn some() {{}} // {word}\n" * 4)
    environment = {**os.environ, "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    for words in (["add", "-A"], ["commit", "-qm", "files"]):
        subprocess.run(["git", "-C", str(project), *words], env=environment, check=True)


def timed(command, **options):
    started = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, **options)
    return time.perf_counter() - started


def beside(project, folder, runs):
    """The same work by the programs that are made for it."""
    index = {**os.environ, "GIT_DIR": str(folder / "beside"), "GIT_WORK_TREE": str(project)}
    subprocess.run(["git", "init", "-q"], env=index, check=True)

    def tree():
        return timed(["git", "add", "-A"], env=index) + timed(["git", "write-tree"], env=index)

    first = tree()
    figures = {
        "glob": [timed(["rg", "--files", "-g", "**/*7.md"], cwd=project) for _ in range(runs)] if shutil.which("rg") else [],
        "grep": [timed(["rg", "-n", WORD], cwd=project) for _ in range(runs)] if shutil.which("rg") else [],
        "first tree": [first],
    }
    later = []
    for number in range(runs):
        (project / "hello.txt").write_text(f"beside {number}\n")
        later.append(tree())
    figures["edit"] = later
    return figures


def measured(world, runs, limit):
    """Figures of a program whose project is filled already; turns are bounded in seconds."""
    def work(server):
        client = Client(server.url)
        session = client.json("POST", "/session", {"title": "files"})["id"]
        started = time.monotonic()

        def turn(text):
            took, answer = client.send("POST", f"/session/{session}/message", prompt(text))
            answer = json.loads(answer)
            if "Done." not in json.dumps(answer["parts"]):
                fail(f"no answer: {json.dumps(answer)[:1000]}")
            return took

        def call(name, arguments):
            """Seconds that the tool itself took, as the program says."""
            turn(f"call {name} {json.dumps(arguments)}")
            parts = [part for message in client.json("GET", f"/session/{session}/message") for part in message["parts"] if part["type"] == "tool"]
            state = parts[-1]["state"]
            if state["status"] != "completed":
                fail(f"{name}: {json.dumps(state)[:1000]}")
            return (state["time"]["end"] - state["time"]["start"]) / 1000

        def several(of):
            values = []
            while len(values) < runs and (not values or time.monotonic() < started + limit):
                values.append(of(len(values)))
            return values

        figures = {"first tree": [turn("first")]}
        figures["glob"] = several(lambda _: call("glob", {"pattern": "**/*7.md"}))
        figures["grep"] = several(lambda _: call("grep", {"pattern": WORD}))
        file = str(world.project / "hello.txt")
        figures["edit"] = several(lambda n: edited(turn, client, session, file, n))
        return figures

    figures = world.run(work)
    return {"ready": [world.started], **figures}


def edited(turn, client, session, file, number):
    """A turn that writes a file, so that a tree is made before it and behind it."""
    turn(f"call read {json.dumps({'filePath': file})}")
    return turn(f"call write {json.dumps({'filePath': file, 'content': f'edit {number}'})}")


def median(values):
    return statistics.median(values) if values else None
