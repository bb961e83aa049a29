"""Layer 2: rules of Java that configurations and data rely on: numbers, patterns, character sets, properties files."""
