"""What workers are asked to do at once."""

from agents.features.notifications.courier import open_couriers


def deliver(targets: list[str]) -> None:
    """The q2 task behind `queue.enqueue_deliveries`.

    Without a courier in this process nothing is lost: workers look for what is due each second.
    """
    for courier in open_couriers():
        courier.send_to(targets)
