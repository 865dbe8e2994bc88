"""Real training loops train, stop in the middle of an epoch, and go on: the samples that they see,
before and after, are those of a run that was never stopped."""

import pytest
import stoker

torch = pytest.importorskip("torch")

BATCH = 10  # ten steps an epoch
STOP = 13  # steps before the run ends: in the middle of the second epoch
STEPS = 30  # three epochs


def new_loader(dataset):
    return stoker.Loader(dataset, BATCH, shuffle=True, seed=3)


@pytest.fixture
def expected(dataset):
    """What a run that was never stopped sees: a list of samples for each step."""
    loader = new_loader(dataset)
    return [batch.samples.tolist() for _ in range(3) for batch in loader]


def new_model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 10))


def loss_of(model, batch):
    return torch.nn.functional.cross_entropy(model(batch["npy"]), batch["cls"])


def fingerprint(batch):
    """A batch by its bytes: movers drop batch.samples."""
    return batch["npy"].sum(dim=(1, 2)).tolist()


@pytest.fixture
def prints(dataset, expected):
    sums = [float(one["npy"].sum()) for one in dataset]
    return [[pytest.approx(sums[n], abs=1e-4) for n in step] for step in expected]


def test_lightning_trains_and_resumes_in_the_middle_of_an_epoch(dataset, prints, tmp_path):
    lightning = pytest.importorskip("lightning")

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = new_model()
            self.seen = []

        def training_step(self, batch, index):
            self.seen.append(fingerprint(batch))
            return loss_of(self.model, batch)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    def new_trainer(steps):
        keeps = lightning.pytorch.callbacks.ModelCheckpoint(
            tmp_path, "middle", every_n_train_steps=STOP, save_top_k=-1
        )
        return lightning.Trainer(
            max_steps=steps,
            max_epochs=3,
            accelerator="cpu",
            logger=False,
            callbacks=[keeps],
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=tmp_path,
        )

    first, second = Module(), Module()
    with new_loader(dataset) as loader:
        new_trainer(STOP).fit(first, loader)
    assert first.seen == prints[:STOP]
    with new_loader(dataset) as loader:
        new_trainer(STEPS).fit(second, loader, ckpt_path=tmp_path / "middle.ckpt")
    assert second.seen == prints[STOP:]


def test_accelerate_trains_and_resumes_in_the_middle_of_an_epoch(dataset, prints, tmp_path):
    accelerate = pytest.importorskip("accelerate")

    def run(steps, resume):
        accelerator = accelerate.Accelerator(cpu=True)
        model = new_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = new_loader(dataset)
        model, optimizer = accelerator.prepare(model, optimizer)
        accelerator.register_for_checkpointing(loader)
        if resume:
            accelerator.load_state(str(tmp_path / "state"))
        seen = []
        while len(seen) < steps:
            for batch in loader:
                batch = accelerate.utils.send_to_device(batch, accelerator.device)
                accelerator.backward(loss_of(model, batch))
                optimizer.step()
                optimizer.zero_grad()
                seen.append(fingerprint(batch))
                if len(seen) == steps:
                    break
        accelerator.save_state(str(tmp_path / "state"))
        loader.close()
        return seen

    assert run(STOP, resume=False) == prints[:STOP]
    assert run(STEPS - STOP, resume=True) == prints[STOP:]


def test_accelerates_prepared_data_loader_hands_the_batches_on(dataset, prints):
    accelerate = pytest.importorskip("accelerate")
    accelerator = accelerate.Accelerator(cpu=True)
    loader = new_loader(dataset)
    outer = accelerator.prepare(
        torch.utils.data.DataLoader(loader.iterable(), batch_size=None, num_workers=0)
    )
    seen = [fingerprint(batch) for _ in range(3) for batch in outer]
    assert seen == prints


def test_the_hugging_face_trainer_trains_and_resumes_in_the_middle_of_an_epoch(
    dataset, prints, tmp_path, monkeypatch
):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    transformers = pytest.importorskip("transformers")
    seen = []

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = new_model()

        def forward(self, npy, cls):
            seen.append(fingerprint({"npy": npy}))
            return {"loss": loss_of(self.model, {"npy": npy, "cls": cls})}

    class KeepPosition(transformers.TrainerCallback):
        """Saves where the loader stands with each checkpoint: the three lines of
        docs/migrate.md."""

        def __init__(self, loader):
            self.loader = loader

        def on_save(self, args, state, control, **rest):
            folder = f"{args.output_dir}/checkpoint-{state.global_step}"
            torch.save(self.loader.state_dict(), f"{folder}/loader.pt")

    class Trainer(transformers.Trainer):
        loader = None

        def get_train_dataloader(self):
            return self.loader

    def new_trainer(steps, loader):
        arguments = transformers.TrainingArguments(
            output_dir=str(tmp_path),
            max_steps=steps,
            save_steps=STOP,
            ignore_data_skip=True,
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
            remove_unused_columns=False,
            logging_steps=1000,
        )
        trainer = Trainer(model=Model(), args=arguments, callbacks=[KeepPosition(loader)])
        trainer.loader = loader
        return trainer

    with new_loader(dataset) as loader:
        new_trainer(STOP, loader).train()
    assert seen == prints[:STOP]
    seen.clear()
    checkpoint = tmp_path / f"checkpoint-{STOP}"
    with new_loader(dataset) as loader:
        loader.load_state_dict(torch.load(checkpoint / "loader.pt"))
        new_trainer(STEPS, loader).train(resume_from_checkpoint=str(checkpoint))
    assert seen == prints[STOP:]
