"""Layer 6: how exactly-once is achieved. Read this page first.

A sink run (runtime/driver/sink/run.py) is eight steps: fence, recover, plan, copy, audit, manifest, publish, commit.
All state is in Kafka: the offsets of the consumer group `connect-<name>` (where the next run starts), the open
manifest, and the connector's state record (the last two in the runs topic). The bucket holds data only.

Invariants. The code quotes them by number where it enforces them.

1.  Nothing is visible before its manifest. Executors only stage: unfinished multipart uploads, temporary files.
2.  Only one run at a time can write. `fence` takes the connector's transactional id. Every later transaction of an
    earlier run fails, so a run that was frozen can no longer write a manifest or offsets.
3.  A manifest is complete or absent: all its chunks are written in one Kafka transaction, and it holds the offsets that
    belong to its files.
4.  Publishing is driven by a manifest only, and is idempotent: a file that is already visible is success only if it is
    the file in the manifest.
5.  Offsets, dead letters, the run's summary and the closing of the manifest are one Kafka transaction.
6.  No run plans while a manifest is open. The run rolls it forward first, so planned ranges never overlap published
    ones.
7.  Every record of a planned range is accounted for: read = written + filtered + dead-lettered + left, and the
    consumer's position has reached the planned end. Every byte that an encoder wrote is in an uploaded part. Otherwise
    nothing is published. If several tasks copy ranges of one partition, this holds for each range, and the offset to
    commit is the end of the ranges that are complete and follow each other (parts.py).
8.  A sweep discards a staged file only if a run of this connector that has ended must have written it: the key and the
    directory match the connector's grammar, and the offset is inside the ranges of that run.
9.  Offsets of a group that a live Kafka Connect worker uses are never touched.
10. Nothing is silent. Whatever is skipped, moved, repeated or left out is counted and named in report, log and pages.
    An ambiguity that could lose a record fails the run, with both readings and what to do.

What a crash leaves at each point, and what the next run does:

| crash | left behind | next run |
|---|---|---|
| before `manifest` | invisible staged files | sweeps them, copies again from the old offsets |
| inside `manifest` | an aborted transaction | the same |
| between `manifest` and `commit` | an open manifest; none, some or all files visible | publishes the rest, commits |
| inside `commit` | a committed or an aborted transaction | nothing, or as in the row above |

A frozen run that wakes up late can only publish the same bytes again (4). Its commit is refused (2), and then it
discards what it staged. A run that is killed may have requests in flight, which reach the store after the sweep. A lost
executor, or a second attempt of a slow task, may stage files even after the commit. Therefore each of the next three
runs sweeps again what such a run may have left.

The files of a newer run look like those of a run that has died. So whoever discards lists first; files that were
listed before a newer run began cannot belong to it. Then a run that sweeps what dead runs have left writes the state,
which Kafka refuses if a newer run has fenced this one. Reading is not enough: a run that was suspended between `fence`
and its first look at the state reads the newer run's state. A run that fails by itself discards what it staged before
it ends, except the files that an open manifest names. It reads the journal after it has listed, and discards only if
no newer run has begun to copy or to recover; if one has, that is why this one failed, and its error says so.

The bucket's lifecycle rule may abort the uploads of an open manifest. The missing files are then copied again from the
manifest's own ranges, under the same keys. This works because the layout is a pure function of the log, the
configuration and the run's frozen clock, and the manifest names or holds all three.

If Kafka no longer holds these records, the run fails, and the manifest stays open. With `offsets.out.of.range`, each
missing file is copied alone from what Kafka holds of its offsets. A record of its directory and offsets was in this
file and in no other, so nothing comes twice. The manifest is rewritten with these files, without those that nothing is
left of, and with sentences about what is given up, which every later run that rolls it forward reports (10).

A manifest whose names the store does not keep (older versions wrote such manifests) can never be published. If none of
its files is visible, it is closed without its offsets, and its records are planned again. If some are, the others count
as lost files whose records cannot be copied.

Tables and markers of complete directories are written after every file of a manifest is visible and before its commit.
A run that recovers the manifest writes them again. Which directories are complete is decided before the manifest is
written, and the manifest records it. So a directory with a marker never has files that are still staged. A run that has
nothing to copy but completes a directory first writes a manifest without files.

Offsets that people set or delete (runtime/driver/offsets) are altered by the fenced producer, in a transaction with the
state (2, 5), and never while a manifest is open (6). A replay is a connector of its own: its state keeps the range that
its first run chose, so every run of it, and every recovery, has the same one.

The manifest decides which files belong to a run; file names do not. So wall-clock partitioners and scheduled rotation
are exactly-once too, and a file may end anywhere, including at the end of a run.
"""
