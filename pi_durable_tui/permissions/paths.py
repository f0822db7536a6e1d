"""PURE. Which files are never changed, and which never read, without asking, whatever the rules say, unless the mode is `all` (rule SA-12)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from pi_durable_tui.permissions.tables import words_of

_SHELL_START = words_of(
    ".bashrc .bash_profile .bash_login .bash_logout .profile .zshrc .zshenv .zprofile .zlogin .zlogout .cshrc .tcshrc .login .kshrc "
    ".mkshrc .inputrc config.fish .envrc .xprofile .xinitrc .pam_environment sitecustomize.py usercustomize.py"
)
_CI_FILES = words_of(
    ".gitlab-ci.yml .gitlab-ci.yaml jenkinsfile azure-pipelines.yml azure-pipelines.yaml .travis.yml bitbucket-pipelines.yml "
    ".drone.yml appveyor.yml .appveyor.yml .cirrus.yml .woodpecker.yml cloudbuild.yaml buildspec.yml .pre-commit-config.yaml"
)
_CI_FOLDERS = frozenset({".circleci", ".buildkite", ".husky", ".woodpecker", ".teamcity", ".gitea", ".forgejo"})
_AGENT_FILES = words_of("agents.md agents.override.md claude.md claude.local.md gemini.md skill.md .cursorrules .windsurfrules .clinerules .mcp.json")
_AGENT_FOLDERS = words_of(".pidurable .agents .claude .codex .cursor .gemini .continue .aider .windsurf .opencode .pi")
_TASK_FOLDERS = frozenset({".vscode", ".devcontainer", ".idea"})
_SECRET_FOLDERS = words_of(".ssh .gnupg .aws .azure .kube .docker .password-store .mozilla .terraform.d")
_SECRET_BELOW_CONFIG = words_of("gcloud gh op hub rclone google-chrome chromium")
_SECRET_FILES = words_of(
    ".netrc _netrc .pgpass .my.cnf .git-credentials .npmrc .pypirc .s3cfg .boto .vault-token .bash_history .zsh_history .python_history "
    ".psql_history .node_repl_history .mysql_history fish_history shadow gshadow"
)
_SECRET_OF_A_PROCESS = frozenset({"environ", "mem", "auxv"})


def sensitive(path: str, own: Sequence[str]) -> str | None:
    """Why a file is sensitive, in words for people; None when it is not.

    Args:
        path: Absolute, links resolved.
        own: Folders of this program, absolute, links resolved.
    """
    if any(is_inside(path, folder) for folder in own):
        return "it belongs to the settings or the store of this program"
    parts = [part.lower() for part in path.split("/") if part]
    folders, name = parts[:-1], parts[-1] if parts else ""
    if ".git" in parts:
        return "it lies inside of a Git repository's own folder, where settings and hooks run programs"
    if name in _SHELL_START or folders[-2:] == [".config", "fish"] or ".ssh" in folders:
        return "programs are run from it when somebody logs in or starts a shell"
    if name in _CI_FILES or not _CI_FOLDERS.isdisjoint(folders) or _is_below(folders, ".github", ("workflows", "actions")):
        return "build servers run what it says"
    if name in _AGENT_FILES or not _AGENT_FOLDERS.isdisjoint(folders) or (name == "copilot-instructions.md" and ".github" in folders):
        return "agents take it as their instructions"
    if not _TASK_FOLDERS.isdisjoint(folders):
        return "editors run what it says"
    return None


def secret(path: str) -> str | None:
    """Why the content of a file or folder is secret, in words for people; None when it is not known to be.

    Args:
        path: Absolute, links resolved.
    """
    parts = [part.lower() for part in path.split("/") if part]
    below_config = {child for parent, child in itertools.pairwise(parts) if parent in {".config", "keyrings"}}
    if not _SECRET_FOLDERS.isdisjoint(parts) or not _SECRET_BELOW_CONFIG.isdisjoint(below_config) or "keyrings" in parts:
        return "keys and logins are kept there"
    if parts and parts[-1] in _SECRET_FILES:
        return "it is where logins are kept, or what was typed"
    if len(parts) > 1 and parts[0] == "proc" and parts[-1] in _SECRET_OF_A_PROCESS:
        return "it shows what a process holds, keys among it"
    return None


def is_inside(path: str, folder: str) -> bool:
    """Whether a path is the folder or below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _is_below(folders: list[str], parent: str, children: Sequence[str]) -> bool:
    return any(first == parent and second in children for first, second in itertools.pairwise(folders))
