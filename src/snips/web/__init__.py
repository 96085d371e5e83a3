"""The web page of `snips web`: a thin layer over restore(), for people rather than programs.

`limits` and `visitors` say what a visitor may do and where their files lie, `task` what one restoration is, `jobs` when
it runs and how it stops, `downloads` and `views` what comes back, `page` puts them on a Gradio page, `server` serves it.
"""
