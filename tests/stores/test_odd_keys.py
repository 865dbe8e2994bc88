"""Keys with characters that URLs, XML, patterns or signatures treat as their own: put there by each
cloud's own library, read and listed by ours. Azurite checks the signatures."""

import pytest
from store_runs import ACCOUNT, Command

ODD = [
    "with blank/two  blanks/é/日本語",
    "a+b/c%20d/50%/%2F/x#1/y&z=1;q,r@s:t$u!'()~",
    'less<more>/quo"te/back`tick/^|/tail ',
]
# no file system has such parts, and S3 has
ONLY_S3 = ["two//slashes", "/leading", "in/../between", "./dot"]
# a pattern that is a key's own name means that key
PATTERNS = ["q?mark/[ab]/st*r"]


@pytest.fixture(scope="module")
def shard(lake):
    return (lake / "bucket" / "train" / "shard-0000.tar").read_bytes()


@pytest.fixture(scope="module")
def wanted(lake, tmp_path_factory):
    command = Command(tmp_path_factory.mktemp("home"))
    return command.digest(lake / "bucket" / "train" / "shard-0000.tar")


def test_odd_keys_of_moto_are_read_and_listed(moto, stoker, shard, wanted):
    client = moto.client()
    client.create_bucket(Bucket="odd")
    for folder in ODD + ONLY_S3 + PATTERNS:
        client.put_object(Bucket="odd", Key=f"{folder}/s.tar", Body=shard)
    command = stoker.with_environment(**moto.environment())
    for folder in ODD + ONLY_S3 + PATTERNS:
        assert command.digest(f"s3://odd/{folder}/s.tar") == wanted, folder
    for folder in ODD:
        assert command.digest(f"s3://odd/{folder}") == wanted, folder


def test_odd_keys_of_azurite_are_read_and_listed(azurite, stoker, shard, wanted):
    service = azurite.client()
    service.create_container("odd")
    for folder in ODD:
        service.get_blob_client("odd", f"{folder}/s.tar").upload_blob(shard)
    command = stoker.with_environment(**azurite.environment())
    for folder in ODD:
        assert command.digest(f"az://{ACCOUNT}/odd/{folder}/s.tar") == wanted, folder
        assert command.digest(f"az://{ACCOUNT}/odd/{folder}") == wanted, folder
