"""What every lowering uses: reasons to refuse, views by strides, shares of work. No operator lives here."""
