"""Every prompt text of the product, as strict Jinja2 templates."""
