"""Lines of progress where there is no terminal."""

from sim2real.report import progress


def test_no_time_left_is_said_once_the_work_is_not_even(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with progress.bar("demo") as report:
        for second, (done, of) in enumerate([(1, 2), (2, 2)]):
            now[0] = 100.0 * (second + 1)
            report(done, of)
        for done in range(1, 31):  # a second each
            now[0] += 1.0
            report(done, 40)
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["demo: 1/2", "demo: 2/2  0 s left", "demo: 15/40", "demo: 30/40"]
