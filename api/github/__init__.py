"""The GitHub bot: from a webhook or a workflow to a check run, one comment and suggestions."""
