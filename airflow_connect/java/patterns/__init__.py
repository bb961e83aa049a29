r"""Regular expressions of java.util.regex.Pattern, read as Java 17 reads them and matched by the `regex` package.

`parsing` reads Java's syntax into the nodes of `nodes`, and refuses what Java refuses. `writing` writes the nodes in
the syntax of `regex`, with every character class, line end and flag spelled out, so that no default of that engine
applies. `compiled` is what callers use. Reading needs the standard library only; `regex` is imported when a pattern is
compiled.

Not supported, and refused with an error: `\b{g}`, the flag `c` (canonical equivalence), look-behinds without a maximum
length (Java accepts some by accident), look-behinds of varying length that contain groups, back references or
possessive parts, and counts above 65,535. Remaining differences: `\b` is ASCII unless the flag `U` is given (as in Java
19 and newer), and Unicode's tables are those of `regex`, which are newer than those of Java 17.

Why `regex`: Python's own `re` has no variable look-behind, no forward references, no scripts and blocks, and no time
limit; RE2 has no look-around and no back references.
"""
