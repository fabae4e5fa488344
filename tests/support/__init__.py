"""What tests share: builders of models, devices, the oracle, how outputs are compared. No tests."""
