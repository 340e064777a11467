#!/usr/bin/env python3
"""OpenCode's web client in a browser, with our server added to it: a prompt, a tool, a permission, a question, an abort.

The pages come from OpenCode that is installed here (`opencode serve`), the API from `BIN serve --cors PAGES`. The browser
(a Chromium without a window) and what drives it come from npm, into .work/web.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from world import HERE, PASSWORD, Model, Server, environment, make_project, remove

BROWSER = HERE.parent.parent / ".work" / "web"
PACKAGES = ["puppeteer-core@24.43.1", "@sparticuz/chromium@147.0.0"]


def browser():
    """The folder with the browser's packages; brought by npm once."""
    if not (BROWSER / "node_modules/puppeteer-core").is_dir():
        BROWSER.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "install", "--prefix", str(BROWSER), "--no-audit", "--no-fund", "--save-exact", *PACKAGES], check=True)
    # Imports are resolved relative to the script.
    script = BROWSER / "web.mjs"
    script.write_text((HERE / "web.mjs").read_text())
    return script


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True, help="our program, called as BIN serve")
    parser.add_argument("--reference", required=True, help="OpenCode, which serves the pages")
    parser.add_argument("--bun", help="Bun for our plugin processes (OUTRIGGER_BUN)")
    parser.add_argument("--save", help="folder for the screens, as web-NN-NAME.txt")
    options = parser.parse_args()
    script = browser()
    folder = Path(tempfile.mkdtemp(prefix="web-")).resolve()
    try:
        with Model(folder) as model:
            project = make_project(folder, model.url)
            pages = folder / "pages"
            pages.mkdir()
            other = {**environment(folder / "other", pages), "OPENCODE_SERVER_PASSWORD": ""}
            with Server(os.path.abspath(options.reference), pages, other, folder / "reference.log") as reference:
                env = environment(folder / "home", project, options.bun)
                with Server(os.path.abspath(options.bin), project, env, folder / "server.log", more=["--cors", reference.url]) as server:
                    out = folder / "out.json"
                    done = subprocess.run(["node", str(script), reference.url, server.url, PASSWORD, str(project), str(out)], stdin=subprocess.DEVNULL, check=False, timeout=240)
        result = json.loads(out.read_text())
        report(result, options.save)
        refused = [name for name, _ in result["asked"] if not re.search(r" (2\d\d|401)$", name)]
        if refused:
            sys.exit(f"calls of the pages that our server does not answer: {', '.join(refused)}")
        sys.exit(done.returncode)
    finally:
        remove(folder)


def report(result, save):
    for number, screen in enumerate(result["screens"], 1):
        print(f"--- {screen['name']}\n{screen['text']}" if screen["name"] == "failed" else f"{screen['name']}: ok")
        if save and screen["name"] != "failed":
            Path(save, f"web-{number:02}-{screen['name']}.txt").write_text(screen["text"] + "\n")
    for name, count in result["asked"]:
        print(f"  {name} x{count}")


if __name__ == "__main__":
    main()
