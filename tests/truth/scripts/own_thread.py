"""No loader: a thread of the script reads ahead, and the loop takes batches from its queue."""

from queue import Queue
from threading import Thread

import own_generator


def ahead(files):
    queue = Queue(4)

    def read():
        for batch in own_generator.batches(files):
            queue.put(batch)
        queue.put(None)

    Thread(target=read, daemon=True).start()
    return iter(queue.get, None)


if __name__ == "__main__":
    own_generator.main(ahead)
