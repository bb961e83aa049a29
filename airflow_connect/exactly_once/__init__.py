"""Floor 4: why every record arrives once, whatever crashes. Read this page first.

A sink run is eight steps (runtime/driver/run.py): fence, recover, plan, copy, audit, manifest, publish, commit. Three
documents carry the truth, all of them in Kafka: the consumer group `connect-<name>` (where the next run starts), the
open manifest and the connector's state (both in the runs topic). The bucket holds data and nothing of ours.

Invariants. They are quoted by number where the code enforces them.

1.  Nothing is visible before its manifest. Executors only stage: unfinished multipart uploads, temporary files.
2.  One run at a time may write. `fence` takes the connector's transactional id; every transaction of an earlier run
    fails from then on, so a run that was frozen cannot write a manifest or offsets any more.
3.  A manifest is whole or absent: all its chunks are written in one Kafka transaction, and it holds the offsets that go
    with its files.
4.  Publishing is driven by a manifest only, and is idempotent: a file that is already visible is success only if it is
    the file in the manifest.
5.  Offsets, dead letters, the run's summary and the closing of the manifest are one Kafka transaction.
6.  No run plans while a manifest is open. It is rolled forward first, so planned ranges never overlap published ones.
7.  Every record of a planned range is accounted for: read = written + filtered + dead-lettered + left, and the
    consumer's position has reached the planned end. Every byte that an encoder wrote is in an uploaded part. Otherwise
    nothing is published.
8.  A sweep discards a staged file only when it is recognisably ours: key grammar, directory grammar and an offset
    inside the ranges of a run that has ended.
9.  Offsets of a group that a live Kafka Connect worker uses are never touched.

What a crash at each point leaves, and what the next run does:

| crash | left behind | next run |
|---|---|---|
| before `manifest` | staged files nobody sees | sweeps them, copies again from the old offsets |
| inside `manifest` | an aborted transaction | the same |
| between `manifest` and `commit` | an open manifest; none, some or all files visible | publishes the rest, commits |
| inside `commit` | committed or aborted transaction | nothing to do, or the line above |

A frozen run that wakes late can only publish the same bytes again (4). Its commit is refused (2), and then it discards
what it staged. One that is killed instead may have had requests on their way, which reach the store after the sweep; a
lost executor or a copy of a slow task may stage even after the commit. So what such runs may leave is swept by each of
the next three runs.

A run that fails by itself discards what it staged before it ends, except what an open manifest names. A sweep or a
discard lists first, then reads the journal, and aborts only if no newer run has begun to copy: that run's files would
look the same, and those that were listed before cannot be its own.

When the bucket's lifecycle rule has aborted the uploads of an open manifest, the missing files are copied again from
the manifest's own ranges, under the same keys, because layout is a pure function of the log, the configuration and the
run's frozen clock, all of which the manifest holds.

What follows publishing (tables, markers of complete directories) is done when every file of a manifest is visible and
before its commit, and again by the run that recovers it. Which directories are complete is decided before the manifest
is written and held by it: a marker never stands beside files that are still staged, and a run that finds nothing to
copy writes a manifest without files before it puts one.

Because the manifest and not the file name carries the truth, wall-clock partitioners and scheduled rotation are
exactly-once too, and a file may end anywhere, also at the end of a run.
"""
