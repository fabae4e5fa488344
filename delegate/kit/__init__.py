"""What every lowering uses: reasons to refuse, strided views, the schedule, shared records. No operator lives here."""
