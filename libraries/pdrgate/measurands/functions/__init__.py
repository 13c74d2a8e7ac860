"""What has changed, function by function."""
