"""What tests share; nothing outside tests uses it."""
