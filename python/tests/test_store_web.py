"""Files of a web server, as nginx serves them by ranges: the data of the same files on a disk."""

import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from servers import free_port, running

import gristmill as gm

NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
pytestmark = pytest.mark.skipif(NGINX is None, reason="no nginx: apt install nginx-light, or as the system has it")

CONFIG = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/errors;
events {{}}
http {{
    access_log {folder}/requests;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    server {{ listen 127.0.0.1:{port}; root {folder}/www; }}
    {encrypted}
}}
"""
ENCRYPTED = "server {{ listen 127.0.0.1:{port} ssl; root {folder}/www; ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem; }}"
LINES = [{"n": n, "text": f"{n} " + "x" * (n * 7919 % 900)} for n in range(4000)]


def encrypted(folder: Path) -> str:
    """A server with a certificate by an authority of its own, at the port that a file tells, where there is a program that signs."""
    openssl = shutil.which("openssl")
    if openssl is None:
        return ""

    def made(*arguments: str) -> None:
        subprocess.run([openssl, *arguments], cwd=folder, check=True, capture_output=True)

    new = ("-newkey", "rsa:2048", "-nodes", "-days", "2")
    made("req", "-x509", *new, "-keyout", "authority.key", "-out", "authority.pem", "-subj", "/CN=an authority")
    made("req", *new[:-2], "-keyout", "key.pem", "-out", "asked.pem", "-subj", "/CN=localhost")
    (folder / "names").write_text("subjectAltName=DNS:localhost")
    by = ("-CA", "authority.pem", "-CAkey", "authority.key", "-CAcreateserial")
    made("x509", "-req", "-in", "asked.pem", *by, "-days", "2", "-extfile", "names", "-out", "cert.pem")
    port = free_port()
    (folder / "port").write_text(str(port))
    return ENCRYPTED.format(folder=folder, port=port)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Where the server is, and the folder that it serves."""
    folder = tmp_path_factory.mktemp("nginx")
    (folder / "www").mkdir()
    port = free_port()
    (folder / "nginx.conf").write_text(CONFIG.format(folder=folder, port=port, encrypted=encrypted(folder)))
    command = [str(NGINX), "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "errors")]
    url = f"http://127.0.0.1:{port}"
    (folder / "www" / "ready").touch()
    with running(command, lambda: urllib.request.urlopen(f"{url}/ready").close()):
        yield url, folder / "www"


@pytest.fixture
def shards(site: tuple[str, Path]) -> tuple[str, str]:
    """Two files, by the server and on the disk."""
    url, folder = site
    for number, part in enumerate((LINES[:1500], LINES[1500:])):
        (folder / f"a-{number:03}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in part))
    return f"{url}/a-{{000..001}}.jsonl", str(folder / "a-*.jsonl")


def texts(ds: gm.MapDataset | gm.IterDataset) -> list[str]:
    return [str(element["text"]) for element in ds]


def test_ranges_give_the_data_of_files(shards: tuple[str, str], site: tuple[str, Path]) -> None:
    far, near = shards
    expected = texts(gm.MapDataset.jsonl(near).shuffle(seed=3))
    assert texts(gm.MapDataset.jsonl(far).shuffle(seed=3)) == expected
    stream = gm.MapDataset.jsonl(far).shuffle(seed=3).to_iter_dataset()
    for workers in (1, 4):
        assert texts(stream.mp_prefetch(gm.MpOptions(num_workers=workers))) == expected
    requests = (site[1].parent / "requests").read_text()
    assert '" 206 ' in requests and '"GET /a-000.jsonl' in requests


def test_a_server_is_believed_where_the_system_trusts_its_certificate(shards: tuple[str, str], site: tuple[str, Path]) -> None:
    folder = site[1].parent
    if not (folder / "port").exists():
        pytest.skip("no openssl, which signs certificates")
    address = f"https://localhost:{(folder / 'port').read_text()}/a-000.jsonl"
    code = f"import gristmill as gm; print(len(gm.MapDataset.jsonl({address!r})))"

    def read(trusted: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"SSL_CERT_FILE": trusted}
        return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)

    assert read(str(folder / "authority.pem")).stdout == "1500\n"
    refused = read(str(folder / "cert.pem")).stderr
    assert "certificate" in refused.lower() and address in refused, refused


def test_a_pass_goes_on_behind_a_state_and_a_killed_worker(shards: tuple[str, str]) -> None:
    stream = gm.MapDataset.jsonl(shards[0]).shuffle(seed=3).to_iter_dataset()
    everything = texts(stream)
    iterator = iter(stream)
    first = [str(next(iterator)["text"]) for _ in range(1000)]
    other = iter(stream.mp_prefetch(gm.MpOptions(num_workers=2)))
    other.set_state(iterator.get_state())
    first += [str(next(other)["text"]) for _ in range(10)]
    workers = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    ours = [int(pid) for pid in workers if b"nginx" not in Path(f"/proc/{pid}/cmdline").read_bytes()]
    if ours:
        os.kill(ours[-1], signal.SIGKILL)
    assert first + [str(element["text"]) for element in other] == everything


def test_rows_of_an_array_are_read_where_they_lie(site: tuple[str, Path]) -> None:
    url, folder = site
    rows = np.arange(3_000_000, dtype=np.int32).reshape(30_000, 100)
    np.save(folder / "rows.npy", rows)
    far = gm.MapDataset.npy(f"{url}/rows.npy")
    assert np.array_equal(next(iter(far[29_999].values())), rows[-1])
    requests = (folder.parent / "requests").read_text().splitlines()
    bodies = [int(line.split('" 206 ')[1].split()[0]) for line in requests if "/rows.npy" in line and '" 206 ' in line]
    assert 0 < sum(bodies) < rows.nbytes / 2


def test_a_file_that_changed_is_refused(site: tuple[str, Path]) -> None:
    url, folder = site
    (folder / "b.jsonl").write_bytes(b'{"n": 1}\n' * 300_000)
    state = iter(gm.MapDataset.jsonl(f"{url}/b.jsonl").to_iter_dataset()).get_state()
    (folder / "b.jsonl").write_bytes(b'{"n": 22}\n' * 300_000)
    with pytest.raises(gm.StateError):
        iter(gm.MapDataset.jsonl(f"{url}/b.jsonl").to_iter_dataset()).set_state(state)


def test_what_is_not_there_is_said(site: tuple[str, Path]) -> None:
    with pytest.raises(OSError, match="none.jsonl"):
        gm.MapDataset.jsonl(f"{site[0]}/none.jsonl")
