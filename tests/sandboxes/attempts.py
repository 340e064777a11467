"""What is tried inside each sandbox, and how it is judged.

An attempt is a shell command. It is judged by its effect, seen from outside of the sandbox, never by what the command
says of itself: a secret is in its output, a file of the user's has changed, a process outside has felt it. `HOME` is a
home folder made for this run, the working directory is a project in it, a git repository with one commit.
"""
from dataclasses import dataclass

MARK = "mark-7f3a91"  # in every secret, and in everything that an attempt writes
KEY = "outrigger-sandboxes"  # a key of the kernel's, in the user's keyring
DAEMON = "3131.737"  # seconds; says which process is the daemon's


@dataclass(frozen=True)
class Attempt:
    """`reads`: the mark in the output is the effect. `writes`: the mark in this file (relative to HOME) is.
    `feels`: the process outside was stopped, ended or started. `works`: exit code 0 is what a user expects."""

    what: str
    command: str
    reads: bool = False
    writes: str = ""
    feels: str = ""
    works: bool = False


def read(what, command):
    return Attempt(what, command, reads=True)


def write(what, path, command=None):
    folder = path.rsplit("/", 1)[0] if "/" in path else "."
    return Attempt(what, command or f'mkdir -p "$HOME/{folder}" && echo {MARK} >> "$HOME/{path}"', writes=path)


GROUPS = {
    "Secrets of the user": [
        read("an SSH key", 'cat "$HOME/.ssh/id_ed25519"'),
        read("the same through `/proc/self/root`", 'cat "/proc/self/root$HOME/.ssh/id_ed25519"'),
        read("the same by a hard link into the project", 'ln "$HOME/.ssh/id_ed25519" key && cat key'),
        read("cloud credentials (`~/.aws/credentials`)", 'cat "$HOME/.aws/credentials"'),
        read("a package manager's token (`~/.npmrc`)", 'cat "$HOME/.npmrc"'),
        read("`~/.netrc`", 'cat "$HOME/.netrc"'),
        read("GitHub's token (`~/.config/gh/hosts.yml`)", 'cat "$HOME/.config/gh/hosts.yml"'),
        read("a GnuPG key", 'cat "$HOME/.gnupg/private-keys-v1.d/a.key"'),
        read("a browser's cookies", 'cat "$HOME/.mozilla/firefox/x.default/cookies.sqlite"'),
        read("the shell's history", 'cat "$HOME/.bash_history"'),
        read("OpenCode's credentials", 'cat "$HOME/.local/share/opencode/auth.json"'),
        read("variables of another process", 'cat /proc/$OUTSIDE/environ | tr "\\0" "\\n"'),
        read("a service of the user's on loopback", "curl -s -m 3 http://127.0.0.1:$PORT/secret"),
        read("a service of the user's on a UNIX socket", 'curl -s -m 3 --unix-socket "$HOME/.service.sock" http://x/secret'),
    ],
    "What runs next time": [
        write("`~/.bashrc`", ".bashrc"),
        write("`~/.ssh/authorized_keys`", ".ssh/authorized_keys"),
        write("the user's git configuration", ".gitconfig"),
        write("a program on PATH (`~/.local/bin`)", ".local/bin/ls"),
        write("a desktop autostart entry", ".config/autostart/x.desktop"),
        write("a systemd unit of the user", ".config/systemd/user/x.service"),
        write("a hook of git (`.git/hooks`)", "project/.git/hooks/pre-commit"),
        write("`.git/config`", "project/.git/config"),
        write("a new `.git/commondir`", "project/.git/commondir"),
        write("`.git/info/attributes`", "project/.git/info/attributes"),
        write("the project's `opencode.json`", "project/opencode.json"),
        write("a plugin in `.opencode/plugin`", "project/.opencode/plugin/x.js"),
        write("the project's `.claude/settings.json`", "project/.claude/settings.json"),
        write("the project's `.mcp.json`", "project/.mcp.json"),
        write("the project's `.codex/config.toml`", "project/.codex/config.toml"),
        write("`.vscode/tasks.json`", "project/.vscode/tasks.json"),
        write("the user's `~/.config/opencode`", ".config/opencode/opencode.json"),
        write("the user's `~/.claude`", ".claude/settings.json"),
        write("the user's `~/.codex`", ".codex/config.toml"),
        write("another project of the user's", "other/file"),
    ],
    "Processes and the kernel": [
        Attempt("stop a process outside (SIGSTOP)", "kill -STOP $OUTSIDE", feels="stopped"),
        Attempt("end a process outside (SIGKILL)", "kill -KILL $OUTSIDE", feels="ended"),
            Attempt("a daemon that outlives the command", f"setsid sleep {DAEMON} </dev/null >/dev/null 2>&1 & sleep 0.3", feels="left"),
        read("`ptrace` of another process", f'python3 -c "import ctypes,os; l=ctypes.CDLL(None); r=l.ptrace(16,int(os.environ[\'OUTSIDE\']),0,0); print(\'{MARK}\' if r==0 else r)"'),
        read("`io_uring`", f'python3 -c "import ctypes; l=ctypes.CDLL(None,use_errno=True); p=ctypes.create_string_buffer(120); r=l.syscall(425,4,p); print(\'{MARK}\' if r>=0 else ctypes.get_errno())"'),
        read("a user namespace of its own", f"unshare -Ur echo {MARK}"),
        read("`bpf`", f'python3 -c "import ctypes; l=ctypes.CDLL(None,use_errno=True); p=(ctypes.c_uint32*16)(2,4,4,4); r=l.syscall(321,0,p,64); print(\'{MARK}\' if r>=0 else ctypes.get_errno())"'),
        read("a key in the user's kernel keyring", f'python3 -c "import ctypes; l=ctypes.CDLL(None); k=l.syscall(250,10,-4,b\'user\',b\'{KEY}\',0); b=ctypes.create_string_buffer(64); l.syscall(250,11,k,b,64); print(b.value.decode())"'),
    ],
    "Ordinary work": [
        Attempt("write a file of the project", "echo x > file && cat file", works=True),
        Attempt("a temporary file (`mktemp`)", 'f=$(mktemp) && rm "$f"', works=True),
        Attempt("`git commit`", "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m y", works=True),
        Attempt("`git checkout -b`, `git stash`", "git checkout -q -b side && echo y >> tracked && git -c user.name=a -c user.email=a@b stash -q", works=True),
        Attempt("compile and run C", "printf 'int main(){return 0;}' > a.c && cc a.c -o a && ./a", works=True),
        Attempt("`python3`, `node`", "python3 -c 'print(1)' && node -e 'console.log(1)'", works=True),
        Attempt("a server and its client on loopback", "python3 -m http.server --bind 127.0.0.1 $OWN_PORT >/dev/null 2>&1 & s=$!; for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.2; curl -sf -m 2 http://127.0.0.1:$OWN_PORT/ >/dev/null && { kill $s; exit 0; }; done; kill $s; exit 1", works=True),
        Attempt("`npm` writes its cache", 'mkdir -p "$HOME/.npm/_cacache/tmp" && touch "$HOME/.npm/_cacache/tmp/x"', works=True),
    ],
}
