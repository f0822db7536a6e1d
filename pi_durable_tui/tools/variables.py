"""PURE. The environment variables that a command gets: an allow-list, and settings that keep programs from asking or drawing (SA-11, SA-17).

What is not named here does not reach a command: no keys, no tokens, no agent sockets, nothing that changes how programs are loaded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_ALLOWED = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "HOSTNAME", "MANPATH", "INFOPATH"),
        *("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_DATA_DIRS", "XDG_CONFIG_DIRS"),
        *("http_proxy", "https_proxy", "no_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "PIP_CERT", "GIT_SSL_CAINFO"),
        *("VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "CONDA_EXE", "PYENV_ROOT", "PIPX_HOME", "PIP_INDEX_URL", "UV_INDEX_URL", "UV_CACHE_DIR"),
        *("NVM_DIR", "NVM_BIN", "VOLTA_HOME", "PNPM_HOME", "BUN_INSTALL", "DENO_INSTALL", "GOPATH", "GOROOT", "GOPROXY", "GOFLAGS", "GOBIN"),
        *("CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "JAVA_HOME", "MAVEN_HOME", "GRADLE_HOME", "GRADLE_USER_HOME", "ANDROID_HOME", "SDKMAN_DIR"),
        *(
            "RBENV_ROOT",
            "GEM_HOME",
            "GEM_PATH",
            "BUNDLE_PATH",
            "DOTNET_ROOT",
            "HOMEBREW_PREFIX",
            "HOMEBREW_CELLAR",
            "HOMEBREW_REPOSITORY",
            "NIX_PATH",
            "NIX_PROFILES",
        ),
        *("CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS", "PKG_CONFIG_PATH", "CMAKE_PREFIX_PATH", "MAKEFLAGS", "CUDA_HOME"),
    }
)
_ALLOWED_START = "LC_"
_LOGIN_IN_URL = re.compile(r"://[^/\s]*@")

_SET = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "GIT_EDITOR": "true",  # an editor would wait for keys that never come
    "EDITOR": "true",
    "VISUAL": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "GCM_INTERACTIVE": "never",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "PYTHONUNBUFFERED": "1",
}


def for_commands(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command, made from that of the agent. Addresses with a login in them are left out."""
    passed = {name: value for name, value in environment.items() if (name in _ALLOWED or name.startswith(_ALLOWED_START)) and not _LOGIN_IN_URL.search(value)}
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", **passed, **_SET}
