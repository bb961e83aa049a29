import time, threading, uvicorn, socket
from tests.airflow.ui.test_pages import HEALTHY, LIST, FAILING, LAGGING, OF_DAG, PAUSED

def test_shots(application, tokens, showcase):
    from playwright.sync_api import sync_playwright
    s = socket.socket(); s.bind(("127.0.0.1", 0)); port = s.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(application, log_config=None, lifespan="off"))
    threading.Thread(target=server.run, kwargs={"sockets": [s]}, daemon=True).start()
    run = showcase.runs[FAILING][0].run_id
    pages = {"list": LIST, "failing": f"{LIST}/connector?name={FAILING}", "healthy": f"{LIST}/connector?name={HEALTHY}", "lagging": f"{LIST}/connector?name={LAGGING}", "run": f"{LIST}/run?name={FAILING}&run={run}", "cluster": f"{LIST}/cluster", "offsets": f"{LIST}/offsets?name={LAGGING}", "missing": f"{LIST}/connector?name=orderz", "of": "/airflow-connect/of?dag_id=nightly"}
    with sync_playwright() as p:
        b = p.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        for scheme, width in (("light", 1280), ("dark", 1280), ("light", 390)):
            ctx = b.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
            ctx.add_cookies([{"name": "_token", "value": tokens["op"], "url": f"http://127.0.0.1:{port}"}])
            page = ctx.new_page()
            page.on("console", lambda m: print("CONSOLE", m.text))
            page.on("pageerror", lambda m: print("ERROR", m))
            for name, path in pages.items():
                if scheme == "dark" and name not in ("list", "failing"): continue
                page.goto(f"http://127.0.0.1:{port}{path}"); time.sleep(1.3 if width == 1280 and scheme == "light" else 0)
                page.reload()
                page.screenshot(path=f"/tmp/he-{name}-{scheme}-{width}.png", full_page=True)
                from axe_playwright_python.sync_playwright import Axe
                r = Axe().run(page)
                for v in r.response["violations"]: print("AXE", name, scheme, width, v["id"], v["impact"], [n["html"][:150] for n in v["nodes"]][:3])
        b.close()
    server.should_exit = True
