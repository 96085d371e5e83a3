"""The web page of `snips web`: a thin layer over restore(), for people rather than programs.

`limits` and `visitors`: what a visitor may ask for, and where their files lie. `task`: one restoration. `jobs`: when it
runs and how it stops. `downloads` and `views`: what comes back. `layout`, `page` and `restoring` put all
on a Gradio page, `sessions` makes Gradio forget closed ones, `server` serves it.
"""
