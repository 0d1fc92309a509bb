"""Tasks of notifications for workers."""

from agents.features.notifications.courier import open_couriers


def deliver(targets: list[str]) -> None:
    """Run the q2 task of `queue.enqueue_deliveries`.

    Without a courier in this process no message is lost: workers poll for due messages each second.
    """
    for courier in open_couriers():
        courier.send_to(targets)
