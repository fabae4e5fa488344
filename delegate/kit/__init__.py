"""The parts that all lowerings share: reasons to refuse, strided views, the schedule, shared records. No operator
lives here."""
