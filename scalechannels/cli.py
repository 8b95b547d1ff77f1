"""The command line. Thin: each command is imported only when it is called, so that --help stays fast."""

from cyclopts import App, Parameter

from scalechannels.version import __version__

app = App(
    name="scalechannels",
    help="Networks that recognise objects at sizes they were never trained on.",
    version=__version__,
    default_parameter=Parameter(consume_multiple=True, negative_iterable=()),
)
app.command("scalechannels.data.cli:app", name="data", help="Fetch, make and look at the data sets.")


def main() -> None:
    app()


if __name__ == "__main__":
    main()
