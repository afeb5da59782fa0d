//! The summary: golden texts, and whatever another program may have stored.

use super::super::summary::{Preparation, Told, render};
use super::super::{SummaryError, Taken, next_for_worker, summary, take};
use super::*;

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn full() -> Told {
    Told {
        id: [some("IP-20231114-ABC123"), some(&id(1))],
        name: some("Анна"),
        phone: some("+7 900 123-45-67"),
        city: some("Казань"),
        contact: [some("Telegram"), some("вечером")],
        task: [some("Отказали в ипотеке"), some("покупка")],
        object: [some("Квартира"), None],
        price: [some("6,5 млн"), some("6500000")],
        down_payment: [some("маткапитал"), None],
        income: [some("Самозанятая"), some("90000")],
        priority: some("срочно обработать"),
        source: [some("/ipoteka"), some("https://site.example/ipoteka")],
        preparation: Preparation::default(),
    }
}

const FULL: &str = "\
Новая заявка ипотечному брокеру
ID: IP-20231114-ABC123
Имя: Анна
Телефон: +7 900 123-45-67
Город: Казань
Связь: Telegram
Задача: Отказали в ипотеке
Объект: Квартира
Стоимость: 6,5 млн
Взнос: маткапитал
Доход: Самозанятая
Приоритет: срочно обработать
Источник: /ipoteka";

#[test]
fn every_line_is_there_in_its_order() {
    assert_eq!(render(&full()), FULL);
    let mut seconds = full();
    for pair in [
        &mut seconds.id,
        &mut seconds.contact,
        &mut seconds.task,
        &mut seconds.price,
        &mut seconds.income,
        &mut seconds.source,
    ] {
        pair[0] = None;
    }
    let expected = "\
Новая заявка ипотечному брокеру
ID: 00000000-0000-7000-8000-000000000001
Имя: Анна
Телефон: +7 900 123-45-67
Город: Казань
Связь: вечером
Задача: покупка
Объект: Квартира
Стоимость: 6500000
Взнос: маткапитал
Доход: 90000
Приоритет: срочно обработать
Источник: https://site.example/ipoteka";
    assert_eq!(render(&seconds), expected);
    let expected = "\
Новая заявка ипотечному брокеру
ID: не указано
Имя: не указано
Телефон: не указано
Город: не указано
Связь: не указано
Задача: не указано
Объект: не указано
Стоимость: не указано
Взнос: не указано
Доход: не указано
Приоритет: не указано
Источник: не указано";
    assert_eq!(render(&Told::default()), expected);
}

#[test]
fn the_preparation_is_told_if_there_is_any() {
    let mut told = full();
    told.preparation.completed = vec!["Диагностика".into(), " ".into(), "Кредитный\nотчёт".into()];
    let expected = "

ПОДГОТОВКА ДО ОБРАЩЕНИЯ
Тип маршрута: не указан
Этап: не указан
Сценарий: не указан
Что уже проверено: Диагностика; Кредитный отчёт
Что осталось уточнить: не указано";
    assert_eq!(render(&told), format!("{FULL}{expected}"));
    told.preparation = Preparation {
        journey_type: some("Самостоятельный"),
        stage: some("Сбор документов"),
        scenario: some("otkazali-v-ipoteke"),
        completed: vec![],
        questions: some("Какой банк?\r\n\r\n\r\nКакой\tсрок?"),
    };
    let expected = "

ПОДГОТОВКА ДО ОБРАЩЕНИЯ
Тип маршрута: Самостоятельный
Этап: Сбор документов
Сценарий: otkazali-v-ipoteke
Что уже проверено: не отмечено
Что осталось уточнить: Какой банк?

Какой срок?";
    assert_eq!(render(&told), format!("{FULL}{expected}"));
    told.preparation.completed = (0..100).map(|n| format!("м{n}")).collect();
    assert!(render(&told).contains("Что уже проверено: м0; м1; м2; м3\n"), "four at most");
}

#[test]
fn no_value_breaks_a_line_or_pushes_out_another() {
    let huge = || some(&"я\n\0\u{7}".repeat(300_000));
    let mut told = full();
    told.name = some("Анна\nТелефон: 666\u{0}\u{1b}[31m\u{2028} \t Б");
    told.city = huge();
    told.task = [huge(), None];
    told.source = [huge(), None];
    let text = render(&told);
    assert!(text.contains("\nИмя: Анна Телефон: 666[31m Б\nТелефон: +7 900 123-45-67\n"), "{text}");
    assert!(text.contains("\nПриоритет: срочно обработать\nИсточник: я я"), "{text}");
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()));
}

#[test]
fn the_text_is_cut_within_both_limits() {
    for filling in ["я", "😀"] {
        let huge = || some(&filling.repeat(5_000));
        let pair = || [huge(), None];
        let told = Told {
            id: pair(),
            name: huge(),
            phone: huge(),
            city: huge(),
            contact: pair(),
            task: pair(),
            object: pair(),
            price: pair(),
            down_payment: pair(),
            income: pair(),
            priority: huge(),
            source: pair(),
            preparation: Preparation {
                journey_type: huge(),
                stage: huge(),
                scenario: huge(),
                completed: vec![filling.repeat(5_000); 9],
                questions: huge(),
            },
        };
        let text = render(&told);
        let (scalars, units) = (text.chars().count(), text.encode_utf16().count());
        assert!(scalars <= 3500 && units <= 4096 && text.ends_with('…'), "{scalars} {units}");
        assert!(scalars == 3500 || units >= 4095, "no more is cut than must be: {scalars} {units}");
    }
}

#[tokio::test]
async fn every_column_is_told_at_its_place_and_a_second_one_where_the_first_says_nothing() {
    let world = World::new();
    world.insert(1, "pending").await;
    let text = async || world.write(|tx| summary(tx, &id(1)).unwrap()).await;
    world
        .run(
            "UPDATE broker_leads SET client_name = 'name', phone = 'phone', city = 'city',
                 preferred_contact = 'contact 1', contact_time = 'contact 2', scenario = 'task 1', mortgage_goal = 'task 2',
                 object_type = 'object 1', property_type = 'object 2', object_price_text = 'price 1', property_price = 2,
                 down_payment_text = 'payment 1', down_payment = 2, income_type = 'income 1', monthly_income = 2,
                 technical_priority = 'priority', source_page = 'source 1', page_url = 'source 2',
                 comment = 'never', bank_history = 'never', referrer = 'never', utm_source = 'never',
                 tracking = '{\"never\": 1}', raw_payload = '{\"never\": 1}'",
        )
        .await
        .unwrap();
    let first = format!(
        "Новая заявка ипотечному брокеру\nID: {}\nИмя: name\nТелефон: phone\nГород: city\nСвязь: contact 1\n\
         Задача: task 1\nОбъект: object 1\nСтоимость: price 1\nВзнос: payment 1\nДоход: income 1\n\
         Приоритет: priority\nИсточник: source 1",
        request(1)
    );
    assert_eq!(text().await, first);
    world
        .run(
            "UPDATE broker_leads SET request_id = NULL, preferred_contact = NULL, scenario = NULL, object_type = NULL,
                 object_price_text = NULL, down_payment_text = NULL, income_type = NULL, source_page = NULL",
        )
        .await
        .unwrap();
    let second = first.replace(&request(1), &id(1)).replace(" 1\n", " 2\n").replace("source 1", "source 2");
    let second =
        ["price", "payment", "income"].iter().fold(second, |text, word| text.replace(&format!("{word} 2"), "2"));
    assert_eq!(text().await, second);
}

#[tokio::test]
async fn a_row_in_another_encoding_is_told_and_stops_nobody() {
    let world = World::new();
    world.insert(1, "pending").await;
    world.insert(2, "pending").await;
    world
        .run(
            "UPDATE broker_leads SET client_name = CAST(x'4A6F7365E90042' AS TEXT), city = 'a' || char(0) || 'b',
                 request_id = CAST(x'FFFE00' AS TEXT), journey_stage = CAST(x'E9' AS TEXT),
                 preparation_completed = '[1, \"\\ud800 A\", {\"b\": 1}, \"B\", \"\", \"C\", \"D\", \"E\"]',
                 updated_at = 9223372036854775807, notification_attempt_count = 1000000,
                 notification_manual_retry_count = 1000000
             WHERE request_id LIKE '%1'",
        )
        .await
        .unwrap();
    let text = world.write(|tx| summary(tx, &id(1)).unwrap()).await;
    assert!(text.contains("\nИмя: Jose\u{fffd}B\n") && text.contains("\nГород: ab\n"), "{text}");
    assert!(text.contains("A; B; C; D\n"), "{text}");
    for expected in [id(1), id(2)] {
        let hands = world.hands.clone();
        let taken = world.write(move |tx| take(tx, &next_for_worker(tx, &hands).unwrap().unwrap()).unwrap()).await;
        let Taken::Claimed { lead_id, attempt, summary, .. } = taken else { panic!("{taken:?}") };
        assert_eq!(lead_id, expected);
        assert!(summary.unwrap().starts_with("Новая заявка"));
        let complete =
            move |tx: &Tx<'_>| super::super::claim::complete_attempt(tx, &lead_id, &Ending::Sent, attempt).unwrap();
        assert_eq!(world.write(complete).await, super::super::Completed::Sent);
    }
}

#[tokio::test]
async fn an_unknown_lead_has_no_summary() {
    let world = World::new();
    let error = world.write(|tx| summary(tx, &id(1)).unwrap_err()).await;
    assert!(matches!(error, SummaryError::NotFound));
    assert_eq!(error.to_string(), "broker_lead_not_found");
}
