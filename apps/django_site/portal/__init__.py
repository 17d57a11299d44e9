"""An ordinary Django site: the admin, links, redirects, an upload of any size, an answer that takes its time."""
