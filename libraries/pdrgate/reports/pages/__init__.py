"""A result as HTML: pages of their own, fragments for Robot's log, and what stands at the top of Robot's pages."""
