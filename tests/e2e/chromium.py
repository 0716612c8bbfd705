"""A headless Chromium, which also takes the screenshots of the documentation."""

from __future__ import annotations

import io
import os
import shutil
import time
from typing import TYPE_CHECKING

import pytest
from PIL import Image
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException, TimeoutException, WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from tests.e2e.pictures import IMAGES, record

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from selenium.webdriver.remote.webelement import WebElement

    T = TypeVar("T")

PROGRAMS = ("chromium", "chromedriver")
TAKES_PICTURES = os.environ.get("WORKSPACE_SCREENSHOTS") == "1"
WIDTH, HEIGHT = 1400, 900
# The documentation shows pictures 736 pixels wide; text in wider windows would be too small.
LEGIBLE = 1100
# Maximum size of a picture in bytes.
MAX_BYTES = 150_000
# Seconds that a page may take to show an element.
SECONDS = 90


MISSING = ", ".join(program for program in PROGRAMS if shutil.which(program) is None)
needs_chromium = pytest.mark.skipif(
    bool(MISSING), reason=f"not installed: {MISSING}. See the target `browser` of the Makefile"
)


class Browser:
    """A browser window. All methods wait for their elements."""

    def __init__(self) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = str(shutil.which("chromium"))
        options.set_capability("goog:loggingPrefs", {"browser": "SEVERE"})
        for argument in (
            "--headless=new",
            "--no-sandbox",  # there is no sandbox as root and in containers
            "--disable-dev-shm-usage",
            "--force-color-profile=srgb",
            "--force-prefers-reduced-motion",
            "--hide-scrollbars",
            "--lang=en-US",
            "--no-proxy-server",
        ):
            options.add_argument(argument)
        self.driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
        self.resize(HEIGHT)

    def close(self) -> None:
        """Close the browser."""
        self.driver.quit()

    def open(self, url: str) -> None:
        """Open a URL."""
        self.driver.get(url)

    def resize(self, height: int, width: int = WIDTH) -> None:
        """Set width and height of the window."""
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )

    def wait_for(self, condition: Callable[[], T], what: str, seconds: float = SECONDS) -> T:
        """
        Wait until a condition is true, and return its value.

        :raises selenium.common.exceptions.TimeoutException: if it does not become true
        """
        try:
            return WebDriverWait(self.driver, seconds, 0.3, [WebDriverException]).until(lambda _driver: condition())
        except TimeoutException as error:
            msg = f"timed out after {seconds:.0f} s waiting for {what}; the page says:\n{self.text()}"
            raise TimeoutException(msg) from error

    def find(self, selector: str) -> WebElement:
        """Return the first visible element of a CSS selector, or of an XPath that starts with ``//``."""
        by = By.XPATH if selector.startswith("//") else By.CSS_SELECTOR

        def seen() -> WebElement | None:
            return next((found for found in self.driver.find_elements(by, selector) if found.is_displayed()), None)

        found = self.wait_for(seen, selector)
        assert found is not None
        return found

    def click(self, selector: str) -> None:
        """Click an element when it is clickable."""
        self.wait_for(lambda: self.find(selector).click() or True, f"{selector} to be clicked")

    def press(self, text: str) -> None:
        """Click the button with this text or, for an icon, with a label that starts with it."""
        self.click(f"//button[normalize-space()='{text}' or starts-with(@aria-label, '{text}')]")

    def follow(self, text: str) -> None:
        """Click the link with this text, and switch to the window that it opens."""
        before = len(self.driver.window_handles)
        self.click(f"//a[normalize-space()='{text}']")
        self.wait_for(lambda: len(self.driver.window_handles) > before, "a new window")
        self.driver.switch_to.window(self.driver.window_handles[-1])
        self.resize(HEIGHT)

    def fill(self, name: str, text: str) -> None:
        """Replace the text of a form field."""
        field = self.find(f"[name='{name}']")
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(text)
        assert field.get_attribute("value") == text

    def text(self, selector: str = "body") -> str:
        """Return the visible text."""
        try:
            return " ".join(found.text for found in self.driver.find_elements(By.CSS_SELECTOR, selector))
        except StaleElementReferenceException:
            return ""

    def read(self, *texts: str, selector: str = "body", seconds: float = SECONDS) -> str:
        """Wait until all texts are visible, and return the visible text."""

        def written() -> str | None:
            shown = self.text(selector)
            return shown if all(text in shown for text in texts) else None

        return str(self.wait_for(written, f"the texts {texts}", seconds))

    def picture(self, name: str, selector: str = "body") -> None:
        """Save a screenshot of an element for the documentation, if ``WORKSPACE_SCREENSHOTS`` is 1."""
        if not TAKES_PICTURES:
            return
        time.sleep(1)  # until animations have ended
        whole = selector == "body"
        png = self.driver.get_screenshot_as_png() if whole else self.find(selector).screenshot_as_png
        file = IMAGES / f"{name}.png"
        # A palette reduces the size to a third without visible changes.
        image = Image.open(io.BytesIO(png)).convert("RGB")
        image.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(file, optimize=True)
        assert file.stat().st_size <= MAX_BYTES, f"{file} has {file.stat().st_size} bytes; {MAX_BYTES} are allowed"
        record(name)
