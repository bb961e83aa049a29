"""A worker without Spark: reads its configuration from stdin as JSON, and works until SIGTERM."""

import faulthandler
import json
import signal
import sys
import threading

from airflow_connect.control.worker.worker import WorkerSettings, work
from airflow_connect.runtime.driver.stopping import request_stop
from tests.support.copies.s3 import InProcessEngine

if __name__ == "__main__":
    faulthandler.register(signal.SIGUSR1)  # A test that waits for its end in vain asks where it hangs.
    stopping = threading.Event()

    def stop(*_: object) -> None:
        stopping.set()
        request_stop()

    signal.signal(signal.SIGTERM, stop)
    settings = WorkerSettings.from_worker(json.loads(sys.stdin.readline()))
    # In a thread, as the command does: uvicorn keeps off signals there.
    thread = threading.Thread(
        target=work, args=(settings, InProcessEngine(), stopping, lambda text: print(text, flush=True))
    )
    thread.start()
    # A signal that the kernel gives to another thread is handled when this one wakes up.
    while thread.is_alive():
        thread.join(0.5)
