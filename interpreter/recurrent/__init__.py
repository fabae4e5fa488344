"""The cells of recurrent operators. No operator lives here."""
