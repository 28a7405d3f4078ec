"""What `%load_ext faultline` has made of this kernel, for faultline.explain(), which works without it, too."""

from __future__ import annotations

extension = None  # extension.Extension, while it is loaded
